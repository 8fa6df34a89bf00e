"""Checks of the nodes of a partition for ``llmb doctor``: how many are up, and with which GPUs."""

import re
from collections.abc import Mapping, Sequence

import attrs

from llmb import DoctorCheck, Job, Target
from llmb_slurm.doctor_checks.cluster_facts import counted_nodes, must_fit_all, partition_setting, partitions
from llmb_slurm.doctor_checks.partition import best_check
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


def check_nodes(job: Job, target: Target[SlurmOptions], names: Sequence[str]) -> DoctorCheck:
    """Check whether one partition has enough nodes with enough GPUs of the right type."""
    limited = partitions(target) if must_fit_all(target.facts) else []
    outside = [check for name in limited if (check := _compare_with_limits(job, target.facts, name))]
    return outside[0] if outside else best_check([_check_partition(job, target, name) for name in names])


def _check_partition(job: Job, target: Target[SlurmOptions], name: str) -> DoctorCheck:
    nodes = [_parsed(each) for each in target.facts.get(f"nodes.{name}", "").split(";") if each]
    if not nodes:
        detail = f"sinfo lists no nodes of {name}; the job needs {job.nodes}"
        return DoctorCheck(name="nodes", ok=None, detail=detail)
    if outside := _compare_with_limits(job, target.facts, name):
        return outside
    wanted = target.gpu_types[0] if target.gpu_types and job.gpus_per_node else ""
    return PartitionNodes(name, nodes, job, target.options, wanted).check()


def _compare_with_limits(job: Job, facts: Mapping[str, str], name: str) -> DoctorCheck | None:
    """Return the failed check of a job with fewer or more nodes than the partition allows for one job, else None."""
    needs = f"the job needs {job.nodes}"
    least, most = partition_setting(facts, name, "MinNodes"), partition_setting(facts, name, "MaxNodes")
    if least.isdigit() and int(least) > job.nodes:
        return _too_few(f"{name} requires at least {counted_nodes(least)} for a job; {needs}", MORE_GPUS)
    if most.isdigit() and int(most) < job.nodes:
        return _too_few(f"{name} allows at most {counted_nodes(most)} for a job; {needs}")
    return None


@attrs.frozen
class PartitionNodes:
    """The nodes of a partition, compared with what a job needs. ``gpu_type`` is "" if the job needs no certain type."""

    name: str
    nodes: Sequence[Nodes]
    job: Job
    options: SlurmOptions
    gpu_type: str

    @property
    def typed(self) -> list[Nodes]:
        """The nodes with GPUs of the type, or of an unknown type."""
        wanted = self.gpu_type
        return [each for each in self.nodes if not wanted or not each.gpu_types or wanted in each.gpu_types]

    @property
    def gpus_per_node(self) -> int:
        """The GPUs that the job requests on each node."""
        return self.job.gpus_per_node if self.options.gpu_request != "none" else 0

    @property
    def large(self) -> list[Nodes]:
        """The nodes of the type with enough GPUs."""
        return [each for each in self.typed if each.gpus >= self.gpus_per_node]

    def check(self) -> DoctorCheck:
        """Return the first check that fails or stays open, else one that succeeds."""
        enough = DoctorCheck(name="nodes", ok=True, detail=self._detail(_total(self._usable(self.large))))
        return self._check_type() or self._check_gpus() or self._check_states() or self._check_start() or enough

    def _check_type(self) -> DoctorCheck | None:
        if _total(self.typed) >= self.job.nodes:
            return None
        others = [each for each in self.nodes if each not in self.typed]
        other = f" ({_total(others)} have {_resources(others)})" if others else ""
        return _too_few(self._detail(_total(self.typed), other), name="nodes" if self.typed else "GPU type")

    def _check_gpus(self) -> DoctorCheck | None:
        if (total := _total(self.large)) >= self.job.nodes:
            return None
        detail = f"{self.name} has {counted_nodes(total)} with {self.gpus_per_node} GPUs or more; {self._needs}"
        fewer = max((each.gpus for each in self.typed if 0 < each.gpus < self.gpus_per_node), default=0)
        lower = f"set `gpus_per_node = {fewer}` in [target], or partition to one with such nodes"
        return _too_few(detail, lower if fewer else MORE_NODES)

    def _check_states(self) -> DoctorCheck | None:
        if (usable := _total(self._usable(self.large))) >= self.job.nodes:
            return None
        detail = (
            f"{usable} of {counted_nodes(_total(self.large))} of {self.name}{self._with_type} are up; {self._needs}"
        )
        fewer_gpus = ", or use fewer GPUs" if usable else ""
        return _too_few(detail, f"wait until more nodes are up (`sinfo -R` lists the reasons){fewer_gpus}")

    def _check_start(self) -> DoctorCheck | None:
        """Return an open check if Slurm may start the job on nodes with other GPUs, else None."""
        if self.gpu_type and not any(each.gpu_types for each in self.large):
            has = f"{self.name} has {counted_nodes(_total(self.large))} with GPUs; {self._needs}"
            detail = f"{has}. Slurm does not know their type: compare it with {self.gpu_type}"
            return DoctorCheck(name="nodes", ok=None, detail=detail)
        others = self._usable(
            [each for each in self.nodes if each not in self.typed and each.gpus >= self.gpus_per_node]
        )
        if not others or _selects_nodes(self.options):
            return None
        may_start = f"but Slurm may start it on {counted_nodes(_total(others))} with {_resources(others)}"
        detail = f"{self._detail(_total(self._usable(self.large)))}, {may_start}"
        lists = f"`sinfo -p {self.name} -o '%N %G %f'` lists both"
        remedy = f"select nodes with constraint or nodelist in [target]; {lists}"
        return DoctorCheck(name="nodes", ok=None, detail=detail, remedy=remedy)

    def _usable(self, nodes: Sequence[Nodes]) -> list[Nodes]:
        return [each for each in nodes if each.are_usable(self.options.reservation)]

    def _detail(self, count: int, other: str = "") -> str:
        return f"{self.name} has {counted_nodes(count)}{self._with_type}{other}; {self._needs}"

    @property
    def _with_type(self) -> str:
        return f" with {self.gpu_type.upper()} GPUs" if self.gpu_type else ""

    @property
    def _needs(self) -> str:
        return f"the job needs {self.job.nodes}"


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
