"""Checks of a Slurm cluster for ``llmb doctor``, from the output of probe.sh."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from llmb import DoctorCheck, Host, Script, Target
from llmb_slurm.doctor_checks.clock import check_clock
from llmb_slurm.doctor_checks.nodes import (
    available_partitions,
    best_check,
    counted_nodes,
    or_set_in_target,
    partition_setting,
    partitions,
    set_in_target,
)
from llmb_slurm.options import SlurmOptions
from llmb_slurm.rejected_and_stuck_jobs import MINE, find_remedy
from llmb_slurm.submit import login_defaults, rejection_reason, submission_functions

CORRECT = "correct the option of [target] that sbatch names; `sbatch --help` lists the options of this version of Slurm"


def check_cluster(target: Target[SlurmOptions], host: Host, scripts: Sequence[Script] = ()) -> Iterator[DoctorCheck]:
    """Yield the checks of Slurm, the partition and its GPUs, the account, containers, the clock and ``scripts``."""
    facts = target.facts
    yield _slurm(facts)
    if facts.get("awk") == "":
        remedy = "have the site install gawk on this host"
        yield DoctorCheck(name="awk", ok=False, detail="not installed; llmb reads squeue with it", remedy=remedy)
    reachable = bool(facts.get("slurm")) and "unreachable" not in facts
    if reachable:
        yield _partition(target)
        yield _account(target)
    if facts.get("slurm") and target.images and target.options.runtime in (None, "pyxis"):
        yield _pyxis(facts)
        yield _enroot(facts)
    yield check_clock(facts)
    if reachable and scripts:
        yield _submission(scripts, host)


def _submission(scripts: Sequence[Script], host: Host) -> DoctorCheck:
    """Check whether Slurm would accept the jobs: account, partition, QOS and every other option of theirs."""
    jobs = dict.fromkeys((_header(script), login_defaults(script)) for script in scripts)
    tests = [
        f"{shlex.join(['use_login_defaults', *names])}\n"
        f'answer=$(echo {shlex.quote(header)} | run_sbatch --test-only 2>&1) || {{ echo "$answer"; exit 1; }}'
        for header, names in jobs
    ]
    result = host.run("\n".join([submission_functions(), *tests]))
    if result.exit_code:
        reason = rejection_reason(result.stdout.strip() or result.stderr.strip())
        detail = f"sbatch would reject the job: {reason}"
        return DoctorCheck(name="submission", ok=False, detail=detail, remedy=find_remedy(reason) or CORRECT)
    return DoctorCheck(name="submission", ok=True, detail="sbatch --test-only accepts the jobs")


def _header(script: Script) -> str:
    """Return the options of a batch script without its id, so that similar jobs are tested once."""
    own = ("#SBATCH --job-name", "#SBATCH --comment", "#SBATCH --output")
    lines = [line for line in script.text.splitlines() if line.startswith("#SBATCH") and not line.startswith(own)]
    return "\n".join(["#!/bin/bash", *lines, "true"])


def _enroot(facts: Mapping[str, str]) -> DoctorCheck:
    """Check whether this host could import an image. Imports are jobs, so a host without enroot is no error."""
    if not facts.get("enroot"):
        detail = "not on this host; images are imported on a compute node, which needs enroot and mksquashfs"
        return DoctorCheck(name="enroot", ok=None, detail=detail)
    if not facts.get("mksquashfs"):
        detail = f"{facts['enroot']}, but mksquashfs is missing, which imports images"
        remedy = "have the site run `sudo apt install squashfs-tools`, or the package of its distribution, on the nodes"
        return DoctorCheck(name="enroot", ok=False, detail=detail, remedy=remedy)
    return DoctorCheck(name="enroot", ok=True, detail=facts["enroot"])


def _slurm(facts: Mapping[str, str]) -> DoctorCheck:
    version = facts.get("slurm", "")
    if not version:
        remedy = (
            'set `host = "LOGIN-NODE"` in [target]: a host of the cluster on which `command -v sbatch` prints a path'
        )
        return DoctorCheck(name="Slurm", ok=False, detail="Slurm's commands are not installed", remedy=remedy)
    if "unreachable" in facts:
        detail = f"{version}: {facts['unreachable']}"
        return DoctorCheck(
            name="Slurm",
            ok=False,
            detail=detail,
            remedy="try again later: if `sinfo` on this host prints the same error then, contact the site",
        )
    return DoctorCheck(name="Slurm", ok=True, detail=version)


def _partition(target: Target[SlurmOptions]) -> DoctorCheck:
    """Check whether the jobs can start in one of their partitions. Slurm accepts several, separated by commas."""
    names = partitions(target)
    if missing := [name for name in names if f"partition.{name}" not in target.facts]:
        detail = f"{missing[0]} does not exist" if missing[0] else "the cluster has no default partition"
        remedy = set_in_target("partition", [*available_partitions(target.facts)])
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    return best_check([_one_partition(name, target) for name in names])


def _one_partition(name: str, target: Target[SlurmOptions]) -> DoctorCheck:
    """Check whether a partition is up, admits the user, and has GPUs if the runs need them."""
    fact, available = target.facts[f"partition.{name}"], available_partitions(target.facts)
    detail = _described(name, fact)
    if not fact.startswith("up|"):
        remedy = f"run again once `sinfo -p {name}` reports it up" + or_set_in_target("partition", [*available])
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    if closed := _closed(name, target):
        reason, certain = closed
        remedy = f"set partition, account or qos in [target] to one {MINE}"
        return DoctorCheck(name="partition", ok=False if certain else None, detail=reason, remedy=remedy)
    uses_gpus = target.gpu_types != ("cpu",)  # without runs, assume that they use GPUs
    if uses_gpus and target.options.gpu_request != "none" and not _has_gpus(fact):
        others = [other for other, each in available.items() if _has_gpus(each)]
        remedy = 'set `gpu_request = "none"` in [target] if Slurm does not manage GPUs'
        remedy += or_set_in_target("partition", others)
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    return DoctorCheck(name="partition", ok=True, detail=detail)


def _has_gpus(fact: str) -> bool:
    return "gpu" in fact.rpartition("|")[2]


def _closed(name: str, target: Target[SlurmOptions]) -> tuple[str, bool] | None:
    """Return why the user may not use a partition, and whether this is certain, or None if nothing forbids it.

    Since Slurm 23.02, the accounts of a partition include those below them, which the probe does not know.
    """
    facts, options, account = target.facts, target.options, _stated_account(target)
    accounts = [account.lower()] if account else _split(facts.get("accounts", ""))
    groups = facts.get("groups", "").split()
    lists = (("AllowAccounts", accounts), ("AllowGroups", groups), ("AllowQos", _split(options.qos or "")))
    for key, own in lists:
        allowed = _split(partition_setting(facts, name, key))
        if own and allowed and allowed != ["ALL"] and not {*own} & {*allowed}:
            below = key == "AllowAccounts" and _version(facts) >= (23, 2)
            only = f"{name} is only for {key.removeprefix('Allow').lower()} {', '.join(allowed)}"
            return f"{only}{' and accounts below them' if below else ''}; yours: {', '.join(own)}", not below
    denied = {*_split(partition_setting(facts, name, "DenyAccounts"))} & {*accounts}
    if not denied or len(denied) < len(accounts):
        return None
    return f"{name} denies the account {', '.join(sorted(denied))}", True


def _version(facts: Mapping[str, str]) -> tuple[int, int]:
    """Return the year and month of the release of Slurm, or zeros if it is unknown."""
    found = re.search(r"(\d+)\.(\d+)", facts["slurm"])
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _split(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


def _described(name: str, fact: str) -> str:
    _, limit, nodes, gres = fact.split("|", 3)
    gpus = gres if "gpu" in gres else "no GPUs known to Slurm"
    return f"{name}: {counted_nodes(nodes)}, {gpus}, time limit {limit}"


def _stated_account(target: Target[SlurmOptions]) -> str:
    """Return the account of the spec, else that of the login, or "" for the user's default account."""
    return target.options.account or target.facts.get("login_account", "")


def _account(target: Target[SlurmOptions]) -> DoctorCheck:
    facts, account = target.facts, _stated_account(target)
    accounts = _split(facts.get("accounts", ""))
    if "accounts" not in facts:
        detail = "cannot be checked: Slurm has no accounting, or `sacctmgr show assoc` does not respond"
        return DoctorCheck(name="account", ok=None, detail=detail)
    if not accounts:
        return DoctorCheck(name="account", ok=True, detail="Slurm reports no accounts")
    if account and account.lower() not in accounts:  # Slurm keeps names of accounts in lower case
        remedy = set_in_target("account", accounts)
        detail = f"you may not use the account {account}"
        return DoctorCheck(name="account", ok=False, detail=detail, remedy=remedy)
    return DoctorCheck(name="account", ok=True, detail=account or f"the default of {', '.join(accounts)}")


def _pyxis(facts: Mapping[str, str]) -> DoctorCheck:
    if facts.get("pyxis") == "yes":
        return DoctorCheck(name="pyxis", ok=True, detail="srun supports container images")
    remedy = 'have the site install pyxis; for recipes without an image, set `runtime = "venv"` in [target]'
    return DoctorCheck(name="pyxis", ok=False, detail="srun does not support container images", remedy=remedy)
