"""The logs of one run: the signatures, errors and processes in them, and the failures that they describe."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import attrs

from llmb.logs.failures.exceptions import SEARCHED_BYTES, TailLine, exception_in, find_errors, read_tail
from llmb.logs.failures.failure_evidence import with_message
from llmb.logs.failures.launcher_reports import order_reports, read_report
from llmb.logs.failures.signature_files import known_signatures, signature_of_exception
from llmb.logs.failures.signature_search import Hit, SignatureSearch, line_at, line_number, search_signatures
from llmb.logs.processes import UNKNOWN_PROCESS, Process, Processes
from llmb.logs.rank_in_file_name import processes_of_logs
from llmb.logs.read_blocks import read_part, tail_starts
from llmb.values.failure import Failure, Signature

SEARCHED_FOR_RANK: Final = 256 << 10
"""Bytes at the end of a log in which the last line of a rank is searched."""

Errors = Mapping[Path, Sequence[TailLine]]
"""The errors in each log."""

PlacedLine = tuple[Path, int, bytes]
"""A log, the byte where a line begins, and the line."""


@attrs.frozen
class RunLogs:
    """The logs of one run, the first byte of each log that counts, and the search for signatures in them."""

    paths: Sequence[Path]
    starts: Mapping[Path, int]
    search: SignatureSearch

    @classmethod
    def of(cls, logs: Iterable[Path], more: Iterable[Signature], starts: Mapping[Path, int]) -> RunLogs:
        """Return those logs that are not empty, with a search for the signatures of core and ``more``."""
        paths = [path for path in logs if os.path.isfile(path) and path.stat().st_size]
        return cls(paths, starts, search_signatures((*known_signatures(), *more)))

    def find_hits(self, search: SignatureSearch, *, warnings: bool) -> list[Hit]:
        """Return the hit that counts in each log, with or without hits in ``warnings``."""
        found = (search.find(path, self.starts.get(path, 0), warnings=warnings) for path in self.paths)
        return [hit for hit in found if hit]

    def find_signature(self, path: Path, error: TailLine) -> Hit | None:
        """Return the signature in the line of an error, or None."""
        hit = self.search.find(path, error.offset)
        return hit if hit and hit.offset <= error.offset + len(error.line) else None

    @cached_property
    def final_errors(self) -> Errors:
        """The errors at the end of each log."""
        return self.errors_above(())

    def errors_above(self, hits: Iterable[Hit]) -> Errors:
        """Return the errors above the hit in each log, or at the end of a log without a hit."""
        offsets, errors = {hit.path: hit.offset for hit in hits}, {}
        for path in self.paths:
            end = offsets.get(path, path.stat().st_size)
            start = min(end, max(self.starts.get(path, 0), end - SEARCHED_BYTES))
            tail = read_part(path, start, end)
            if path in offsets:
                tail = tail[: tail.rfind(b"\n") + 1]
            found = find_errors(tail, self.search.is_report)
            errors[path] = [attrs.evolve(error, offset=start + error.offset) for error in found]
        return errors

    def final_lines(self) -> Iterator[PlacedLine]:
        """Yield the lines at the ends of the logs that are no reports of launchers and no stack traces."""
        for path, start in tail_starts(self.paths, self.starts, SEARCHED_FOR_RANK).items():
            for line in read_tail(read_part(path, start, path.stat().st_size), self.search.is_report):
                if line.kind == "text":
                    yield path, start + line.offset, line.line

    @cached_property
    def reports(self) -> Sequence[Hit]:
        """The reports of launchers that name a process, the first one first."""
        starts = tail_starts(self.paths, self.starts, SEARCHED_BYTES)
        return order_reports([hit for path, start in starts.items() for hit in self.search.reports(path, start)])

    def process_of_line(self, path: Path, line: bytes) -> Process:
        """Return the process that printed a line, according to the line, to the reports and to the name of the log."""
        return self._processes.process_of_line(line).completed(self._of_logs[path])

    def is_of_first(self, path: Path, line: bytes) -> bool:
        """Check whether the process that ended first, according to the reports, printed a line."""
        return self._processes.is_of_first(line, self.process_of_line(path, line).rank)

    @cached_property
    def _of_logs(self) -> Mapping[Path, Process]:
        return processes_of_logs(self.paths)

    @cached_property
    def _processes(self) -> Processes:
        """The processes whose ends launchers reported."""
        return Processes.of_reports([*map(read_report, self.reports)])

    def failure_of_hit(self, hit: Hit) -> Failure:
        """Return the failure that a signature describes."""
        return self.failure(hit.signature, hit.path, hit.offset, hit.cause, hit.process)

    def failure_of_exception(self, path: Path, error: TailLine, process: Process = UNKNOWN_PROCESS) -> Failure:
        """Return the failure that an exception without a signature describes."""
        signature = signature_of_exception(exception_in(error.line))
        failure = self.failure(signature, path, error.offset, signature.cause, process)
        return attrs.evolve(failure, evidence=with_message(path, error.offset, failure.evidence))

    def failure(
        self, signature: Signature, path: Path, offset: int, cause: str, process: Process = UNKNOWN_PROCESS
    ) -> Failure:
        """Return a failure with the line at ``offset`` as evidence. ``process`` may name its process."""
        line = line_at(path, offset)
        process = self._processes.complete(process.completed(self.process_of_line(path, line.raw)))
        return Failure(
            cause=cause,
            origin=signature.origin or None,
            evidence=line.text,
            line=line_number(path, line.offset),
            rank=process.rank,
            host=process.host,
            remedy=signature.remedy,
        )
