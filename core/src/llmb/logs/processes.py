"""Rank and host of the process that wrote a line, from labels and launchers' reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from llmb.logs.ansi_escapes import plain_text
from llmb.logs.rank_labels import split_label
from llmb.values.frozen import FrozenMap

MOST_RANKS: Final = 100_000
"""Ranks of one report that are read, because a torn line may name an impossible number of them."""

_RANK = re.compile(
    rb"\[rank(\d+)\]:|\[\d+,(?:mpirank:)?(\d+)[\],]|(?<![\w.-])(?:(?i:rank)[_-]?)?(\d+): |(?<![\w./@-])\[(\d+)\]:"
    rb"|\[rank=(\d+)\] pid="
)
"""The rank in a label. A number after a role, as in ``[default3]:``, is that of the process on its node."""

_TASK = re.compile(rb"\s*(\d+): (.*)", re.DOTALL)
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


NOBODY: Final = Process()


def process_of_line(line: bytes) -> Process:
    """Return the process that a label at the beginning of the line, or the line itself, names."""
    label, text = split_label(plain_text(line))
    if _OF_SURVIVOR.search(text):
        return NOBODY
    match = _HOST_IN_MESSAGE.search(text) or _HOST.search(label)
    host = next(filter(None, match.groups())).decode(errors="replace") if match else None
    return Process(_rank_of(label, text), None if host == "localhost" else host)


def rank_of_label(label: bytes) -> int | None:
    """Return the rank that a label names, or None if it names none, or only the process on its node."""
    numbers = [next(filter(None, match.groups())) for match in _RANK.finditer(label)]
    is_of_node = _LOCAL_RANK.search(label) and b"[rank" not in label
    if numbers and not is_of_node:  # the last label is that of the innermost launcher
        return int(numbers[-1])
    return None


def _task_of(line: bytes) -> tuple[int | None, bool]:
    """Return the number of the task that the label names, or None, and whether the label of a launcher follows."""
    label, _ = split_label(plain_text(line))
    match = _TASK.match(label)
    return (int(match[1]), match[2] != b"") if match else (None, False)


def _rank_of(label: bytes, text: bytes) -> int | None:
    if (rank := rank_of_label(label)) is not None:
        return rank
    named = _NAMED_RANK.search(text.decode(errors="replace"))
    return int(next(filter(None, named.groups()))) if named else None


def expand_ranks(text: str) -> Iterator[int]:
    """Yield the ranks in a list such as ``0-3,7``."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            yield from range(int(first), min(int(last or first), int(first) + MOST_RANKS) + 1)


@attrs.frozen
class Report:
    """The processes in a launcher's report, and the line where the report begins.

    ``of_tasks`` is True if the numbers are those of tasks: of ranks, unless each task is a launcher.
    """

    line: bytes
    processes: Sequence[Process]
    of_tasks: bool = False


def _shows_launcher(task: int | None, process: Process) -> bool:
    """Check whether a report within a task is by a launcher of ranks. Programs that report a signal name no host."""
    return process.host is not None or (task is not None and process.rank not in (None, task))


@attrs.frozen
class Processes:
    """The processes that launchers reported, in the order in which they reported their ends.

    ``of_tasks`` has the process that a launcher within a labelled task reported, as there may be one on each node. The
    number of such a task is no rank. ``tasks`` are the tasks that their launcher reported.
    """

    reported: Sequence[Process] = ()
    of_tasks: Mapping[int, Process] = FrozenMap()
    tasks: Mapping[int, Process] = FrozenMap()

    @classmethod
    def of_reports(cls, reports: Sequence[Report]) -> Processes:
        """Return the processes of reports. Those of tasks do not count if the tasks are launchers."""
        of_launcher = [each for report in reports if report.of_tasks for each in report.processes]
        tasks = {each.rank: each for each in reversed(of_launcher) if each.rank is not None}
        every: list[Process] = []
        within: list[tuple[int | None, Process]] = []
        are_launchers = False
        for report in reports:
            task = None if report.of_tasks else _task_of(report.line)[0]
            host = tasks[task].host if task in tasks else None
            found = [process.completed(Process(host=host)) for process in report.processes]
            every += found
            if not report.of_tasks:
                within += [(task, process) for process in found]
                are_launchers |= any(_shows_launcher(task, process) for process in report.processes)
        if not are_launchers:
            return cls(every, tasks=tasks)
        ranks = reversed([(task, each) for task, each in within if task is not None and each.rank is not None])
        return cls([each for _, each in within], dict(ranks), tasks)

    def process_of_line(self, line: bytes) -> Process:
        """Return the process that printed a line: that of its label, or the reported one of its task.

        If the label also names the process within the task, only the host of the task is added.
        """
        process, (task, has_label) = process_of_line(line), _task_of(line)
        if task is None or (process == NOBODY and self._all_reports_agree):
            return process
        of_task = self.of_tasks.get(task)
        if has_label:
            return process.completed(Process(host=(of_task or self.tasks.get(task, NOBODY)).host))
        return of_task or process

    def is_of_first(self, line: bytes, rank: int | None) -> bool:
        """Check whether the process that ended first printed a line of this rank. It may be a task with several."""
        task, _ = _task_of(line)
        is_task = task is not None and not self.of_tasks and self.first in self.tasks.values()
        return self.first.rank is not None and (task if is_task else rank) == self.first.rank

    @property
    def first(self) -> Process:
        """The process that ended first."""
        return self.reported[0] if self.reported else NOBODY

    @property
    def _all_reports_agree(self) -> bool:
        return len(set(self.reported)) == 1

    def complete(self, process: Process) -> Process:
        """Return a process with its host, if a launcher reported it, or if all reports are from one host.

        An unknown process is the reported one, if there is only one.
        """
        if process.host:
            return process
        if process == NOBODY and self._all_reports_agree:
            return self.first
        hosts: Mapping[int | None, str] = {each.rank: each.host for each in reversed(self.reported) if each.host}
        only = next(iter(set(hosts.values()))) if len(set(hosts.values())) == 1 else None
        return Process(process.rank, hosts.get(process.rank) or (only if process.rank is None else None))
