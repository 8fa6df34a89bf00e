"""Checks of the nodes of a partition for ``llmb doctor``: how many are up, and with which GPUs."""

import re
from collections.abc import Mapping, Sequence

import attrs

from llmb import DoctorCheck, Job, Target
from llmb_slurm.options import SlurmOptions

GPU_NAME = re.compile(r"(?<![a-z0-9])[a-z]{1,2}[0-9]{2,3}[a-z]?(?![a-z0-9])")
"""The name of a GPU type in the name of a gres, such as h100 in ``nvidia_h100_80gb_hbm3``."""

MORE_GPUS = "use more GPUs, or another partition; `scontrol show partition | grep -e Name -e MinNodes` lists them"

MORE_NODES = "use fewer GPUs, or a partition with more such nodes; `sinfo -o '%P %D %G'` lists them"

GPU_REQUESTS = ("gpus-per-task", "gpus-per-socket")
"""Options of [target.sbatch] whose value may name the type of the GPUs, such as ``h100:1``."""

UNUSABLE = re.compile(r"(?i)(down|drain|fail|future|inval|unk|maint|reboot|power(ed|ing)_down|no_respond)|.*\*$")
"""States of nodes on which no job starts. An asterisk marks a node that does not respond."""


@attrs.frozen
class Nodes:
    """Some nodes of a partition in one state, with the same generic resources."""

    state: str
    count: int
    gres: str

    @property
    def gpus(self) -> int:
        """The number of GPUs of each node."""
        return sum(int(count) for count in re.findall(r"(?:^|,)gpu(?::[^:,(]+)?:(\d+)", self.gres))

    @property
    def gpu_types(self) -> set[str]:
        """The names of GPU types in the name of the resource, such as h100."""
        names = re.findall(r"(?:^|,)gpu:([^:,(]+):\d", self.gres)
        return {found for name in names for found in GPU_NAME.findall(name.lower().replace("_", "-"))}

    def are_usable(self, reservation: str | None) -> bool:
        """Check whether jobs of this reservation, if any, can start on these nodes, now or once other jobs have ended.

        During a reservation with the flag MAINT, its nodes have the state "maint", and only its own jobs start there.
        """
        return not UNUSABLE.match(self.state.removeprefix("maint") if reservation else self.state)


def set_in_target(key: str, values: Sequence[str]) -> str:
    """Return the line of the spec that sets a key to the first of these values, with the other values."""
    others = f", or to {', '.join(values[1:])}" if len(values) > 1 else ""
    return f'set `{key} = "{values[0]}"` in [target]{others}' if values else f"set {key} in [target]"


def or_set_in_target(key: str, values: Sequence[str]) -> str:
    """Return the end of a remedy that proposes to set a key as the alternative, or "" if there is no value."""
    return f", or {set_in_target(key, values)}" if values else ""


def partitions(target: Target[SlurmOptions]) -> list[str]:
    """Return the names of the partitions in which Slurm may start the jobs."""
    facts = target.facts
    return (target.options.partition or facts.get("login_partition") or facts.get("default_partition", "")).split(",")


def stated_account(target: Target[SlurmOptions]) -> str:
    """Return the account of the spec, else that of the login, or "" for the user's default account."""
    return target.options.account or target.facts.get("login_account", "")


def split_list(text: str) -> list[str]:
    """Return the items of a list of Slurm, which commas separate."""
    return [each for each in text.split(",") if each]


def available_partitions(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of the partitions to propose, by name: those that are up and that the site shows to the user."""
    found = {key.partition(".")[2]: fact for key, fact in sorted(facts.items()) if key.startswith("partition.")}
    return {name: fact for name, fact in found.items() if fact.startswith("up|") and _is_shown(name, facts)}


def _is_shown(name: str, facts: Mapping[str, str]) -> bool:
    groups = partition_setting(facts, name, "AllowGroups") or "ALL"
    is_member = groups == "ALL" or not {*groups.split(",")}.isdisjoint(facts.get("groups", "").split())
    return is_member and partition_setting(facts, name, "Hidden") != "YES"


def counted_nodes(number: int | str) -> str:
    """Return the number with its noun: "1 node", "2 nodes"."""
    return f"{number} node" if str(number) == "1" else f"{number} nodes"


def best_check(checks: Sequence[DoctorCheck]) -> DoctorCheck:
    """Return the best check of several partitions, because Slurm may start the job in each of them."""
    return min(checks, key=lambda each: (True, None, False).index(each.ok))


def check_nodes(job: Job, target: Target[SlurmOptions], names: Sequence[str]) -> DoctorCheck:
    """Check whether one partition has enough nodes with enough GPUs of the right type."""
    return best_check([_nodes_of_partition(job, target, name) for name in names])


def _nodes_of_partition(job: Job, target: Target[SlurmOptions], name: str) -> DoctorCheck:
    needs = f"the job needs {job.nodes}"
    nodes = [_parsed(each) for each in target.facts.get(f"nodes.{name}", "").split(";") if each]
    if not nodes:
        return DoctorCheck(name="nodes", ok=None, detail=f"sinfo lists no nodes of {name}; {needs}")
    if outside := _compare_with_limits(job, target.facts, name, needs):
        return outside
    wanted = target.gpu_types[0] if target.gpu_types and job.gpus_per_node else ""
    typed = [each for each in nodes if not wanted or not each.gpu_types or wanted in each.gpu_types]
    described = f" with {wanted.upper()} GPUs" if wanted else ""
    if _total(typed) < job.nodes:
        others = [each for each in nodes if each not in typed]
        other = f" ({_total(others)} have {_resources(others)})" if others else ""
        detail = f"{name} has {counted_nodes(_total(typed))}{described}{other}; {needs}"
        return _too_few(detail, name="nodes" if typed else "GPU type")
    reservation = target.options.reservation
    per_node = job.gpus_per_node if target.options.gpu_request != "none" else 0
    large = [each for each in typed if each.gpus >= per_node]
    total, usable = _total(large), _total([each for each in large if each.are_usable(reservation)])
    if total < job.nodes:
        detail = f"{name} has {counted_nodes(total)} with {per_node} GPUs or more; {needs}"
        fewer = max((each.gpus for each in typed if 0 < each.gpus < per_node), default=0)
        lower = f"set `gpus_per_node = {fewer}` in [target], or partition to one with such nodes"
        return _too_few(detail, lower if fewer else MORE_NODES)
    if usable < job.nodes:
        fewer_gpus = ", or use fewer GPUs" if usable else ""
        remedy = f"wait until more nodes are up (`sinfo -R` lists the reasons){fewer_gpus}"
        return _too_few(f"{usable} of {counted_nodes(total)} of {name}{described} are up; {needs}", remedy)
    if wanted and not any(each.gpu_types for each in large):
        reason = f"Slurm does not know their type: compare it with {wanted}"
        return DoctorCheck(
            name="nodes", ok=None, detail=f"{name} has {counted_nodes(total)} with GPUs; {needs}. {reason}"
        )
    detail = f"{name} has {counted_nodes(usable)}{described}; {needs}"
    elsewhere = [each for each in nodes if each not in typed and each.are_usable(reservation) and each.gpus >= per_node]
    return _check_other_gpus(name, detail, [] if _selects_nodes(target.options) else elsewhere)


def _compare_with_limits(job: Job, facts: Mapping[str, str], name: str, needs: str) -> DoctorCheck | None:
    """Return the failed check of a job with fewer or more nodes than the partition allows for one job, else None."""
    least, most = partition_setting(facts, name, "MinNodes"), partition_setting(facts, name, "MaxNodes")
    if least.isdigit() and int(least) > job.nodes:
        return _too_few(f"{name} requires at least {counted_nodes(least)} for a job; {needs}", MORE_GPUS)
    if most.isdigit() and int(most) < job.nodes:
        return _too_few(f"{name} allows at most {counted_nodes(most)} for a job; {needs}")
    return None


def _check_other_gpus(name: str, detail: str, others: Sequence[Nodes]) -> DoctorCheck:
    """Return the check of a partition with enough nodes. ``others`` have other GPUs, and could get the job too."""
    if not others:
        return DoctorCheck(name="nodes", ok=True, detail=detail)
    return DoctorCheck(
        name="nodes",
        ok=None,
        detail=f"{detail}, but Slurm may start it on {counted_nodes(_total(others))} with {_resources(others)}",
        remedy=f"select nodes with constraint or nodelist in [target]; `sinfo -p {name} -o '%N %G %f'` lists both",
    )


def _selects_nodes(options: SlurmOptions) -> bool:
    """Check whether the user selects nodes. Which GPUs these have is not checked."""
    types_gpus = any(":" in str(options.sbatch.get(name)) for name in GPU_REQUESTS)
    selects = types_gpus or "nodefile" in options.sbatch
    return bool(options.constraint or options.nodelist or options.exclude or options.reservation or selects)


def _too_few(detail: str, remedy: str = MORE_NODES, *, name: str = "nodes") -> DoctorCheck:
    return DoctorCheck(name=name, ok=False, detail=detail, remedy=remedy)


def _total(nodes: Sequence[Nodes]) -> int:
    return sum(each.count for each in nodes)


def _resources(nodes: Sequence[Nodes]) -> str:
    return ", ".join(sorted({each.gres for each in nodes}))


def _parsed(text: str) -> Nodes:
    state, count, gres = text.split("|", 2)
    return Nodes(state, int(count), gres)


def partition_setting(facts: Mapping[str, str], partition: str, name: str) -> str:
    """Return a setting of a partition, or "" if it is unknown."""
    return setting_in(facts.get(f"settings.{partition}", ""), name)


def setting_in(line: str, name: str) -> str:
    """Return a value of ``scontrol -o show``, or "" if the line lacks it."""
    found = re.search(rf"(?:^|\s){name}=(\S*)", line)
    return found[1] if found else ""
