"""Check of the partitions in which jobs may start, for ``llmb doctor``."""

import re
from collections.abc import Mapping, Sequence

from llmb import DoctorCheck, Target
from llmb_slurm.doctor_checks.cluster_facts import (
    available_partitions,
    counted_nodes,
    must_fit_all,
    partition_setting,
    partitions,
    split_list,
    stated_account,
)
from llmb_slurm.doctor_checks.remedies import or_set_in_target, set_in_target
from llmb_slurm.options import SlurmOptions
from llmb_slurm.rejected_and_stuck_jobs import MINE


def check_partition(target: Target[SlurmOptions]) -> DoctorCheck:
    """Check whether the jobs can start in one of their partitions. Slurm may accept several, separated by commas.

    With EnforcePartLimits=ALL, sbatch rejects a job if any of its partitions is closed to the user.
    """
    names = partitions(target)
    if missing := [name for name in names if f"partition.{name}" not in target.facts]:
        detail = f"{missing[0]} does not exist" if missing[0] else "the cluster has no default partition"
        remedy = set_in_target("partition", [*available_partitions(target.facts)])
        return DoctorCheck(name="partition", ok=False, detail=f"{detail}{_of_login(target)}", remedy=remedy)
    if must_fit_all(target.facts):
        closed = [check for name in names if (check := _check_access(name, target))]
        if closed:
            return min(closed, key=lambda each: each.ok is not False)  # one that is certain before others
    return best_check([_one_partition(name, target) for name in names])


def open_partitions(target: Target[SlurmOptions]) -> list[str]:
    """Return the partitions in which the jobs can start, or all of theirs if they can start in none."""
    names = partitions(target)
    return [name for name in names if _one_partition(name, target).ok is not False] or names


def best_check(checks: Sequence[DoctorCheck]) -> DoctorCheck:
    """Return the best check of several partitions, because Slurm may start the job in each of them."""
    return min(checks, key=lambda each: (True, None, False).index(each.ok))


def _of_login(target: Target[SlurmOptions]) -> str:
    is_set = target.options.partition or not target.facts.get("login_partition")
    return "" if is_set else " (SBATCH_PARTITION of the login)"


def _one_partition(name: str, target: Target[SlurmOptions]) -> DoctorCheck:
    """Check whether a partition is up, admits the user, and has GPUs if the runs need them."""
    fact, available = target.facts[f"partition.{name}"], available_partitions(target.facts)
    detail = _described(name, fact)
    if not fact.startswith("up|"):
        remedy = f"run again once `sinfo -p {name}` reports it up" + or_set_in_target("partition", [*available])
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    if closed := _check_access(name, target):
        return closed
    uses_gpus = target.gpu_types != ("cpu",)  # without runs, assume that they use GPUs
    if uses_gpus and target.options.gpu_request != "none" and not _has_gpus(fact):
        others = [other for other, each in available.items() if _has_gpus(each)]
        remedy = 'set `gpu_request = "none"` in [target] if Slurm does not manage GPUs'
        remedy += or_set_in_target("partition", others)
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    return DoctorCheck(name="partition", ok=True, detail=detail)


def _check_access(name: str, target: Target[SlurmOptions]) -> DoctorCheck | None:
    """Return the failed or open check of a partition that is closed to the user, else None."""
    if not (closed := _closed(name, target)):
        return None
    reason, certain = closed
    remedy = f"set partition, account or qos in [target] to one {MINE}"
    return DoctorCheck(name="partition", ok=False if certain else None, detail=reason, remedy=remedy)


def _has_gpus(fact: str) -> bool:
    return "gpu" in fact.rpartition("|")[2]


def _closed(name: str, target: Target[SlurmOptions]) -> tuple[str, bool] | None:
    """Return why the user may not use a partition, and whether this is certain, or None if nothing forbids it.

    Since Slurm 23.02, the accounts of a partition include those below them, which the probe does not know.
    """
    facts, options, account = target.facts, target.options, stated_account(target)
    accounts = [account.lower()] if account else split_list(facts.get("accounts", ""))
    groups = facts.get("groups", "").split()
    lists = (("AllowAccounts", accounts), ("AllowGroups", groups), ("AllowQos", split_list(options.qos or "")))
    for key, own in lists:
        allowed = split_list(partition_setting(facts, name, key))
        if own and allowed and allowed != ["ALL"] and not {*own} & {*allowed}:
            below = key == "AllowAccounts" and _version(facts) >= (23, 2)
            only = f"{name} is only for {key.removeprefix('Allow').lower()} {', '.join(allowed)}"
            return f"{only}{' and accounts below them' if below else ''}; yours: {', '.join(own)}", not below
    denied = {*split_list(partition_setting(facts, name, "DenyAccounts"))} & {*accounts}
    if not denied or len(denied) < len(accounts):
        return None
    return f"{name} denies the account {', '.join(sorted(denied))}", True


def _version(facts: Mapping[str, str]) -> tuple[int, int]:
    """Return the year and month of the release of Slurm, or zeros if it is unknown."""
    found = re.search(r"(\d+)\.(\d+)", facts["slurm"])
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _described(name: str, fact: str) -> str:
    _, limit, nodes, gres = fact.split("|", 3)
    gpus = gres if "gpu" in gres else "no GPUs known to Slurm"
    return f"{name}: {counted_nodes(nodes)}, {gpus}, time limit {limit}"
