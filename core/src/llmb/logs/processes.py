"""Rank and host of the process that wrote a line, from labels and launchers' reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import attrs

from llmb.logs.ansi_escapes import plain_text
from llmb.logs.rank_labels import split_label
from llmb.values.frozen import FrozenMap

MAX_RANKS: Final = 100_000
"""Ranks of one report that are read, because a torn line may name an impossible number of them."""

_RANK = re.compile(
    rb"\[rank(\d+)\]:|\[\d+,(?:mpirank:)?(\d+)[\],]|(?<![\w.-])(?:(?i:rank)[_-]?)?(\d+): |(?<![\w./@-])\[(\d+)\]:"
    rb"|\[rank=(\d+)\] pid="
)
"""The rank in a label. A number after a role, as in ``[default3]:``, is that of the process on its node."""

_TASK = re.compile(rb"\s*(?P<task>\d+): (?P<inner_label>.*)", re.DOTALL)
"""The label of a task, and the label of another launcher that may follow."""

_LOCAL_RANK = re.compile(rb"\[(?!rank)[a-z]\w*?\d+\]:")
_HOST = re.compile(
    rb"(?:^|(?<= ))(?:[a-z]+stepd-)?((?:\d{1,3}\.){3}\d{1,3}|(?!nvidia-nvswitch|(?i:rank)[_-]?\d+:)[A-Za-z][\w.-]*): "
    rb"|\[([A-Za-z][\w.-]*):\d+\]:|\[\d+,mpirank:\d+,([\w.-]+)\]<|\[pod/([\w.-]+)/|, ip=([\d.]+)\) "
    rb"|^([A-Za-z][\w.-]*) [\w./@-]+\[\d+\]: "
)
_NAMED_RANK = re.compile(r"\[[Rr]ank ?(\d+)\]|\bon rank (\d+)\b|\bRank (\d+)[:/]")
_HOST_IN_MESSAGE = re.compile(
    rb"(?:^|(?<=[ \]]))([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] "  # host:pid:thread [device]
    rb"|^\[([\w.-]+):\d+ *:\d+:\d+\] "  # [host:pid:thread:pid]
    rb"|\*\*\* (?:STEP|JOB) \S+ ON (\w[\w.-]*)"
    rb"|error: Node failure on (\w[\w.-]*)"
    rb"|^([A-Za-z][\w.-]*) kernel: (?:\[[ \d.]+\] )?(?:NVRM|nvidia|amdgpu|Out of memory|oom-kill|Memory cgroup)"
)
_OF_SURVIVOR = re.compile(rb"\*\*\* (?:STEP|JOB) .*DUE TO NODE ")
"""The message about a failed node, which another node prints."""


@attrs.frozen
class Process:
    """A process of a run: its rank and its host, each None if it is unknown."""

    rank: int | None = None
    host: str | None = None

    def completed(self, other: Process) -> Process:
        """Return this process with what only the other description of it has."""
        return Process(self.rank if self.rank is not None else other.rank, self.host or other.host)


UNKNOWN_PROCESS: Final = Process()


def process_of_line(line: bytes) -> Process:
    """Return the process that a label at the beginning of the line, or the line itself, names."""
    label, text = split_label(plain_text(line))
    if _OF_SURVIVOR.search(text):
        return UNKNOWN_PROCESS
    match = _HOST_IN_MESSAGE.search(text) or _HOST.search(label)
    host = next(filter(None, match.groups())).decode(errors="replace") if match else None
    rank = rank_of_label(label)
    if rank is None and (named := _NAMED_RANK.search(text.decode(errors="replace"))):
        rank = int(next(filter(None, named.groups())))
    return Process(rank, None if host == "localhost" else host)


@lru_cache(maxsize=1 << 14)  # the line of each step has a label
def rank_of_label(label: bytes) -> int | None:
    """Return the rank that a label names, or None if it names none, or only the process on its node."""
    numbers = [next(filter(None, match.groups())) for match in _RANK.finditer(label)]
    is_of_node = _LOCAL_RANK.search(label) and b"[rank" not in label
    if numbers and not is_of_node:  # the last label is that of the innermost launcher
        return int(numbers[-1])
    return None


def _task_label(line: bytes) -> re.Match[bytes] | None:
    return _TASK.match(split_label(plain_text(line))[0])


def task_of_line(line: bytes) -> int | None:
    """Return the number of the task that the label of a line names, or None."""
    label = _task_label(line)
    return int(label["task"]) if label else None


def expand_ranks(text: str) -> Iterator[int]:
    """Yield the ranks in a list such as ``0-3,7``."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            yield from range(int(first), min(int(last or first), int(first) + MAX_RANKS) + 1)


@attrs.frozen
class Report:
    """The processes in a launcher's report, and the task that printed the report, None if no label names it.

    ``about_tasks`` is True if the numbers are those of tasks: of ranks, unless each task is a launcher.
    """

    processes: Sequence[Process]
    task: int | None = None
    about_tasks: bool = False

    @property
    def is_of_task_launcher(self) -> bool:
        """True if a launcher within a task printed the report. Programs that report a signal name no host."""
        return not self.about_tasks and any(
            process.host is not None or (self.task is not None and process.rank not in (None, self.task))
            for process in self.processes
        )

    def located(self, tasks: Mapping[int, Process]) -> Report:
        """Return this report with the host of its task for processes without a host."""
        if self.task is None or self.task not in tasks:
            return self
        task = Process(host=tasks[self.task].host)
        return attrs.evolve(self, processes=[process.completed(task) for process in self.processes])


def _first_of_each(numbered: Iterable[tuple[int | None, Process]]) -> dict[int, Process]:
    """Return the first process of each number that has a rank."""
    first: dict[int, Process] = {}
    for number, process in numbered:
        if number is not None and process.rank is not None:
            first.setdefault(number, process)
    return first


@attrs.frozen
class Processes:
    """The processes that launchers reported, in the order in which they reported their ends.

    ``tasks`` are the tasks that their launcher reported. ``within_tasks`` has the process that a launcher within a
    labelled task reported, as there may be one on each node. The number of such a task is no rank.
    """

    reported: Sequence[Process] = ()
    tasks: Mapping[int, Process] = FrozenMap()
    within_tasks: Mapping[int, Process] = FrozenMap()

    @classmethod
    def of_reports(cls, reports: Sequence[Report]) -> Processes:
        """Return the processes of reports. Those of tasks do not count if the tasks are launchers."""
        of_tasks = [report for report in reports if report.about_tasks]
        tasks = _first_of_each((process.rank, process) for report in of_tasks for process in report.processes)
        counted = [report.located(tasks) for report in reports]
        within_tasks: Mapping[int, Process] = {}
        if any(report.is_of_task_launcher for report in reports):
            counted = [report for report in counted if not report.about_tasks]
            within_tasks = _first_of_each((report.task, process) for report in counted for process in report.processes)
        return cls([process for report in counted for process in report.processes], tasks, within_tasks)

    def process_of_line(self, line: bytes) -> Process:
        """Return the process that printed a line: that of its label, or the reported one of its task.

        If the label also names the process within the task, only the host of the task is added.
        """
        process, label = process_of_line(line), _task_label(line)
        if label is None or (process == UNKNOWN_PROCESS and self._all_reports_agree):
            return process
        task = int(label["task"])
        within_task = self.within_tasks.get(task)
        if label["inner_label"]:
            host = (within_task or self.tasks.get(task, UNKNOWN_PROCESS)).host
            return process.completed(Process(host=host))
        return within_task or process

    def is_of_first(self, line: bytes, rank: int | None) -> bool:
        """Check whether the process that ended first printed a line of this rank. It may be a task with several."""
        task = task_of_line(line)
        if task is not None and not self.within_tasks and self.first in self.tasks.values():
            return task == self.first.rank
        return rank is not None and rank == self.first.rank

    @property
    def first(self) -> Process:
        """The process that ended first."""
        return self.reported[0] if self.reported else UNKNOWN_PROCESS

    @property
    def _all_reports_agree(self) -> bool:
        return len(set(self.reported)) == 1

    def complete(self, process: Process) -> Process:
        """Return a process with its host, if a launcher reported it, or if all reports are from one host.

        An unknown process is the reported one, if there is only one.
        """
        if process.host:
            return process
        if process == UNKNOWN_PROCESS and self._all_reports_agree:
            return self.first
        hosts = {each.rank: each.host for each in reversed(self.reported) if each.host}
        host = hosts.get(process.rank)
        if host is None and process.rank is None and len(set(hosts.values())) == 1:
            host = next(iter(hosts.values()))
        return attrs.evolve(process, host=host)
