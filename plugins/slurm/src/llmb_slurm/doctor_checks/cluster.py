"""Checks of a Slurm cluster for ``llmb doctor``, from the output of probe.sh."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from llmb import DoctorCheck, Host, Script, Target
from llmb_slurm.doctor_checks.clock import check_clock
from llmb_slurm.doctor_checks.cluster_facts import split_list, stated_account
from llmb_slurm.doctor_checks.partition import check_partition
from llmb_slurm.doctor_checks.remedies import set_in_target
from llmb_slurm.options import SlurmOptions
from llmb_slurm.rejected_and_stuck_jobs import find_remedy
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
        yield check_partition(target)
        yield _account(target)
    if facts.get("slurm") and target.uses_images and target.options.runtime in (None, "pyxis"):
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


def _account(target: Target[SlurmOptions]) -> DoctorCheck:
    facts, account = target.facts, stated_account(target)
    accounts = split_list(facts.get("accounts", ""))
    if "accounts" not in facts:
        detail = "cannot be checked: Slurm has no accounting, or `sacctmgr show assoc` does not respond"
        return DoctorCheck(name="account", ok=None, detail=detail)
    if not accounts:
        return DoctorCheck(name="account", ok=True, detail="Slurm reports no accounts")
    if account and account.lower() not in accounts:  # Slurm keeps names of accounts in lower case
        remedy = set_in_target("account", accounts)
        of_login = "" if target.options.account else " (SBATCH_ACCOUNT or SLURM_ACCOUNT of the login)"
        detail = f"you may not use the account {account}{of_login}"
        return DoctorCheck(name="account", ok=False, detail=detail, remedy=remedy)
    return DoctorCheck(name="account", ok=True, detail=account or f"the default of {', '.join(accounts)}")


def _pyxis(facts: Mapping[str, str]) -> DoctorCheck:
    if facts.get("pyxis") == "yes":
        return DoctorCheck(name="pyxis", ok=True, detail="srun supports container images")
    remedy = 'have the site install pyxis; for recipes without an image, set `runtime = "venv"` in [target]'
    return DoctorCheck(name="pyxis", ok=False, detail="srun does not support container images", remedy=remedy)
