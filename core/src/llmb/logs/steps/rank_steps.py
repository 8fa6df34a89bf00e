"""Step times of each process, if a log has labels of ranks, or if each rank has a log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from llmb.logs.processes import Process
from llmb.logs.rank_in_file_name import processes_of_logs
from llmb.values.frozen import FrozenMap
from llmb.values.steps import Notice, RankTimes, Step

MAX_STEPS: Final = 200
"""The last steps of each process that are kept, so that thousands of ranks need little memory."""

LoggedRank = tuple[str, int | None]
"""The log of a process and its rank."""

NumberedStepTime = tuple[int, float]
"""The number of a step and its time in seconds."""

NO_HOSTS: Final[Mapping[int, str]] = FrozenMap()


def has_rank(items: Sequence[Step | Notice]) -> bool:
    """Check whether a step of a block has a rank, or the times of all ranks."""
    return any(item.rank is not None or item.rank_times for item in items if isinstance(item, Step))


class RankSteps:
    """The last step times of each process in the logs of one run."""

    def __init__(self) -> None:
        self._times: dict[LoggedRank, deque[NumberedStepTime]] = {}
        self._printed_for_all: dict[LoggedRank, deque[NumberedStepTime]] = {}
        self._attempt = 0

    def add(self, items: Sequence[Step | Notice], source: str) -> None:
        """Add what a parser returned for a log."""
        for item in items:
            if not isinstance(item, Step) or item.time_s is None or item.attempt < self._attempt:
                continue
            if item.attempt > self._attempt:
                self._times.clear()
                self._printed_for_all.clear()
                self._attempt = item.attempt
            _append(self._times, (source, item.rank), (item.step, item.time_s))
            for rank, time_s in item.rank_times.items():
                _append(self._printed_for_all, (source, rank), (item.step, time_s))

    def by_log(self) -> dict[str, dict[int, float]]:
        """Return the step times in each log, those of its lowest rank."""
        logs: dict[str, dict[int, float]] = {}
        for source, rank in sorted(self._times, key=lambda logged: logged[1] or 0, reverse=True):
            logs.setdefault(source, {}).update(self._times[source, rank])  # lower ranks replace higher ones
        return logs

    def by_process(self, logs: Iterable[str], hosts: Mapping[int, str] = NO_HOSTS) -> list[RankTimes]:
        """Return the times of each process. ``hosts`` are those of ranks whose logs do not name them.

        If a log has the times of all ranks, only these count.
        """
        of_logs = {str(path): process for path, process in processes_of_logs(map(Path, logs)).items()}
        found = []
        for (source, rank), times in (self._printed_for_all or self._times).items():
            of_log = Process() if self._printed_for_all else of_logs.get(source, Process())
            process = Process(rank).completed(of_log)
            host = hosts.get(process.rank) if process.rank is not None else None
            found.append(RankTimes(process.rank, process.host or host, dict(times)))
        return found


def _append(times: dict[LoggedRank, deque[NumberedStepTime]], rank: LoggedRank, time: NumberedStepTime) -> None:
    """Add a step time of a rank, except one that is printed twice."""
    of_rank = times.setdefault(rank, deque(maxlen=MAX_STEPS))
    if not of_rank or of_rank[-1] != time:
        of_rank.append(time)
