"""Cause of a failed run: the earliest known signature in its logs, else its last exception."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import attrs

from llmb.logs.failures.commands_in_remedies import FIRST_ERRORS
from llmb.logs.failures.earliest_hit import SIDE_EFFECTS, earliest_hit, ending_below, precedes
from llmb.logs.failures.exceptions import (
    AT_THE_END,
    CHAINED,
    SEARCHED,
    TailLine,
    exception_in,
    find_errors,
    first_exception,
    read_tail,
)
from llmb.logs.failures.failure_evidence import with_message
from llmb.logs.failures.launcher_reports import find_reported_exception, follows_report, order_reports, read_report
from llmb.logs.failures.signature_files import known_signatures, signature_of_exception
from llmb.logs.failures.signature_search import Hit, SignatureSearch, line_at, line_number, search_signatures, text_of
from llmb.logs.failures.survived_errors import find_continuation
from llmb.logs.processes import NOBODY, Process, Processes
from llmb.logs.rank_in_file_name import processes_of_logs
from llmb.logs.read_blocks import read_part, tail_starts
from llmb.values.failure import UNKNOWN, Failure, Signature
from llmb.values.frozen import FrozenMap

PROCESS_FAILED: Final = Signature(
    needle=UNKNOWN,
    cause=f"{UNKNOWN}: a process failed",
    remedy=f"find the error of this process among {FIRST_ERRORS}",
)
"""The cause of an exception that only reports another process."""

PEER_DIED: Final = "another process of the run died"
"""The cause of signatures that processes also print while a scheduler ends all of them."""

IMPORT_ERRORS: Final = ("ImportError", "ModuleNotFoundError")
"""Exceptions that programs also print about an optional module, before they continue without it."""

OF_LAUNCHERS: Final = ("CalledProcessError",)
"""Exceptions that launchers raise because of another process, besides those that name the connection to it."""

SEARCHED_FOR_RANK: Final = 256 << 10
"""Bytes at the end of a log in which the last line of a rank is searched."""

_Errors = Mapping[Path, Sequence[TailLine]]  # the errors in each log
_PlacedLine = tuple[Path, int, bytes]  # a log, the byte where a line begins, and the line

FROM_THE_START: Mapping[Path, int] = FrozenMap()


def diagnose(
    logs: Iterable[Path],
    more: Iterable[Signature] = (),
    starts: Mapping[Path, int] = FROM_THE_START,
    *,
    endings: Sequence[Signature] = (),
    warnings: bool = True,
) -> Failure | None:
    """Return the cause that the logs of one run contain, or None. Missing and empty logs are skipped.

    A primary signature is the cause, wherever it is. Of several logs, the signature with the earliest time counts. A
    signature in a warning is the cause only if no exception ended a process, and if the logs have only warnings and
    reports of launchers. Without ``warnings``, it is never the cause, as for runs that may have succeeded.
    A secondary signature means that something else failed before: the cause is then the last exception before the
    signature, or at the end of a log without a signature. If that exception only reports another process, it becomes
    the evidence of the secondary signature. If only reports of launchers precede it, the cause is unknown.
    ``more`` are signatures besides those of core. ``endings`` are the messages by which a scheduler ends all processes.
    Such a message is the cause if a process reports just before it that another one died. ``starts`` is the first byte
    of a log that counts.
    """
    return Diagnosis.of(logs, (*more, *endings), starts).cause(endings, warnings=warnings)


def last_exception(
    logs: Iterable[Path],
    more: Iterable[Signature] = (),
    starts: Mapping[Path, int] = FROM_THE_START,
    *,
    ended: bool = True,
) -> Failure | None:
    """Return the exception that ended a rank, or None. The first arguments are those of `diagnose`.

    If the exception only reports another process, the cause is unknown. Without ``ended``, the rank may print ordinary
    lines after the exception.
    """
    found = Diagnosis.of(logs, more, starts)
    errors = found.errors({})
    return found.own_exception(errors, ended=ended) or found.unknown(errors)


@attrs.frozen
class Diagnosis:
    """The search for a cause in the logs of one run."""

    search: SignatureSearch
    paths: Sequence[Path]
    starts: Mapping[Path, int]

    @classmethod
    def of(cls, logs: Iterable[Path], more: Iterable[Signature], starts: Mapping[Path, int]) -> Diagnosis:
        """Return the diagnosis of those logs that are not empty."""
        paths = [path for path in logs if os.path.isfile(path) and path.stat().st_size]
        return cls(search_signatures((*known_signatures(), *more)), paths, starts)

    def cause(self, endings: Sequence[Signature] = (), *, warnings: bool = True) -> Failure | None:
        """Return the cause according to the signatures, or None."""
        found = (self.search.find(path, self.starts.get(path, 0), warnings=warnings) for path in self.paths)
        hits = [hit for hit in found if hit]
        if not hits:
            return None
        best = earliest_hit(hits)
        if best.is_warning and (exception := self.own_exception(self.errors({}), ended=True)):
            return exception
        if best.signature.primary:
            failure = self._failure(best.signature, best.path, best.offset, best.cause, best.process)
            return (
                self._explanation(best)
                or self._after_import(best, failure.evidence)
                or self._after_survival(best, endings, warnings=warnings)
                or failure
            )
        errors = self.errors({hit.path: hit.offset for hit in hits})
        if exception := self.own_exception(errors) or self._reported_exception():
            return exception
        if best.signature.report or (best.signature not in endings and follows_report(best, self._reports)):
            return self._report(best, errors)
        if best.signature.cause == PEER_DIED and (ending := ending_below(best, endings)):
            return self._failure(ending.signature, ending.path, ending.offset, ending.cause)
        last = ((path, found[-1].offset) for path, found in errors.items() if found)
        path, offset = next(last, (best.path, best.offset))
        return self._failure(best.signature, path, offset, best.cause, best.process)

    def own_exception(self, logs: _Errors, *, ended: bool = False) -> Failure | None:
        """Return the first exception that another process did not cause, of the rank that ended first if it has one."""
        candidates = [(path, error) for path, errors in logs.items() if (error := first_exception(errors, ended=ended))]
        if not candidates:
            return None
        for path, errors in logs.items():
            of_first = [each for each in errors if self._is_of_first(path, each.line)]
            if error := first_exception(of_first, ended=ended):
                return self._exception(path, error)
        return self._exception(*candidates[0])

    def _after_import(self, hit: Hit, evidence: str) -> Failure | None:
        """Return the exception that ended a process after it survived a failed import, or None.

        Without a signature, it counts only if the process continued after the import, and if no launcher raised it. If
        the same error follows, another process without a label printed it.
        """
        if exception_in(evidence.encode()) not in IMPORT_ERRORS:
            return None
        line = line_at(hit.path, hit.offset).raw  # the evidence of a long line is shortened
        rank, text = self._process(hit.path, line).rank, text_of(line)
        errors = self.errors({})[hit.path]
        later = [error for error in errors if error.offset > hit.offset and text_of(error.line) != text]
        final = first_exception([each for each in later if self._process(hit.path, each.line).rank == rank], ended=True)
        if final is None:
            return None
        between = read_part(hit.path, hit.offset, min(final.offset, hit.offset + SIDE_EFFECTS))
        if CHAINED.search(between):
            return None
        if (found := self._signature_in(hit.path, final)) and found.weight == 0:
            return self._failure(found.signature, found.path, found.offset, found.cause)
        lines = [each for each in read_tail(between) if each.kind == "text" and not self.search.is_report(each.line)]
        continued = sum(self._process(hit.path, each.line).rank == rank for each in lines) > AT_THE_END
        return self._exception(hit.path, final) if continued and exception_in(final.line) not in OF_LAUNCHERS else None

    def _explanation(self, hit: Hit) -> Failure | None:
        """Return the cause to which this one yields, such as the full disk that left a damaged file, or None.

        A process on another node may have complained about the file first. Only a secondary signature must be earlier.
        """
        if not hit.signature.yields_to:
            return None
        search = self.search.select(lambda each: each.cause in hit.signature.yields_to)
        found = (search.find(path, self.starts.get(path, 0), warnings=False) for path in self.paths)
        hits = [each for each in found if each and (each.signature.primary or precedes(each, hit))]
        best = earliest_hit(hits) if hits else None
        return self._failure(best.signature, best.path, best.offset, best.cause, best.process) if best else None

    def _after_survival(self, hit: Hit, endings: Sequence[Signature], *, warnings: bool) -> Failure | None:
        """Return the known cause of the end of a process that survived an error, such as a failed lookup, or None."""
        continued = hit.signature.survivable and find_continuation(hit.path, hit.offset, hit.signature.needle)
        if not continued:
            return None
        first, start = continued
        others = self.search.select(lambda each: each.primary and not each.survivable)
        if (found := others.find(hit.path, first, warnings=False)) and found.offset < start:
            return self._failure(found.signature, found.path, found.offset, found.cause, found.process)
        later = attrs.evolve(self, starts={**self.starts, hit.path: start})
        failure = later.cause(endings, warnings=warnings) or later.own_exception(later.errors({}), ended=True)
        return failure if failure and not failure.cause.startswith(UNKNOWN) else None

    def _reported_exception(self) -> Failure | None:
        """Return the exception in a launcher's report about the process that failed first, or None."""
        for hit in self._reports:
            if error := find_reported_exception(hit):
                if (known := self._signature_in(hit.path, error)) and not known.signature.report:
                    return self._failure(known.signature, hit.path, error.offset, known.cause, hit.process)
                return self._exception(hit.path, error, hit.process)
        return None

    def _signature_in(self, path: Path, error: TailLine) -> Hit | None:
        """Return the signature in the line of an error, or None."""
        hit = self.search.find(path, error.offset)
        return hit if hit and hit.offset <= error.offset + len(error.line) else None

    def unknown(self, logs: _Errors) -> Failure | None:
        """Return an unknown cause with the last error that ended a rank, or None if none did."""
        ended = [(path, error) for path, errors in logs.items() for error in errors if error.ended_rank]
        if not ended:
            return None
        path, error = ended[-1]
        return self._failure(PROCESS_FAILED, path, error.offset, PROCESS_FAILED.cause)

    def errors(self, hits: Mapping[Path, int]) -> _Errors:
        """Return the errors before the hit in each log, or at the end of a log without a hit."""
        logs = {}
        for path in self.paths:
            end = hits.get(path, path.stat().st_size)
            start = min(end, max(self.starts.get(path, 0), end - SEARCHED))
            tail = read_part(path, start, end)
            if path in hits:
                tail = tail[: tail.rfind(b"\n") + 1]
            found = find_errors(tail, self.search.is_report)
            logs[path] = [attrs.evolve(error, offset=start + error.offset) for error in found]
        return logs

    def _exception(self, path: Path, error: TailLine, process: Process = NOBODY) -> Failure:
        signature = signature_of_exception(exception_in(error.line))
        failure = self._failure(signature, path, error.offset, signature.cause, process)
        return attrs.evolve(failure, evidence=with_message(path, error.offset, failure.evidence))

    def _report(self, hit: Hit, errors: _Errors) -> Failure:
        """Return an unknown cause, with the last error or line of the process that ended first as evidence."""
        hit = next(iter(self._reports), hit)
        every = ((path, error) for path, found in errors.items() for error in found)
        lines = [(path, error.offset, error.line) for path, error in every if not self.search.is_report(error.line)]
        of_rank = self._of_rank(lines, hit.process.rank) or self._of_rank(self._last_lines(), hit.process.rank)
        path, offset, _ = (of_rank or lines or [(hit.path, hit.offset, b"")])[-1]
        return self._failure(hit.signature, path, offset, f"{UNKNOWN}: {hit.cause}", hit.process)

    def _of_rank(self, lines: Iterable[_PlacedLine], rank: int | None) -> list[_PlacedLine]:
        return [each for each in lines if rank is not None and self._process(each[0], each[2]).rank == rank]

    def _last_lines(self) -> Iterator[_PlacedLine]:
        """Yield the lines at the ends of the logs that are no reports of launchers and no stack traces."""
        for path, start in tail_starts(self.paths, self.starts, SEARCHED_FOR_RANK).items():
            for line in read_tail(read_part(path, start, path.stat().st_size)):
                if line.kind == "text" and not self.search.is_report(line.line):
                    yield path, start + line.offset, line.line

    def _failure(self, signature: Signature, path: Path, offset: int, cause: str, process: Process = NOBODY) -> Failure:
        line = line_at(path, offset)
        process = self._processes.complete(process.completed(self._process(path, line.raw)))
        return Failure(
            cause=cause,
            origin=signature.origin or None,
            evidence=line.text,
            line=line_number(path, line.offset),
            rank=process.rank,
            host=process.host,
            remedy=signature.remedy,
        )

    def _process(self, path: Path, line: bytes) -> Process:
        return self._processes.process_of_line(line).completed(self._of_logs[path])

    def _is_of_first(self, path: Path, line: bytes) -> bool:
        return self._processes.is_of_first(line, self._process(path, line).rank)

    @cached_property
    def _of_logs(self) -> Mapping[Path, Process]:
        return processes_of_logs(self.paths)

    @cached_property
    def _processes(self) -> Processes:
        """The processes whose ends launchers reported."""
        return Processes.of_reports([*map(read_report, self._reports)])

    @cached_property
    def _reports(self) -> Sequence[Hit]:
        """The reports of launchers that name a process, the first one first."""
        starts = tail_starts(self.paths, self.starts, SEARCHED)
        return order_reports([hit for path, start in starts.items() for hit in self.search.reports(path, start)])
