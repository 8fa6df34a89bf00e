"""Cause of a failed run: the rules that choose one of the signatures and exceptions in its logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from llmb.logs.failures.commands_in_remedies import FIRST_ERRORS
from llmb.logs.failures.earliest_hit import SIDE_EFFECTS, earliest_hit, ending_above, ending_below, precedes
from llmb.logs.failures.exceptions import AT_THE_END, CHAINED, TailLine, exception_in, first_exception, read_tail
from llmb.logs.failures.launcher_reports import find_reported_exception, follows_report
from llmb.logs.failures.run_logs import Errors, PlacedLine, RunLogs
from llmb.logs.failures.signature_search import Hit, HitKind, line_at, text_of
from llmb.logs.failures.survived_errors import find_continuation
from llmb.logs.read_blocks import read_part
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

LOST_PEER: Final = (PEER_DIED, "NCCL could not reach another process")
"""Causes of signatures that a process prints once another one ended, sometimes above the exception of that one."""

WAITED: Final = "a rank waited in vain for the other ranks"
"""The cause of signatures that processes print after a timeout, usually before they end themselves."""

CRASHES: Final = ("a process crashed (segmentation fault)", "a process crashed (bus error)")
"""Causes of signatures that processes also print while they exit: after an exception, or when a scheduler ends them."""

IMPORT_ERRORS: Final = ("ImportError", "ModuleNotFoundError")
"""Exceptions that programs also print about an optional module, before they continue without it."""

OF_LAUNCHERS: Final = ("CalledProcessError",)
"""Exceptions that launchers raise because of another process, besides those that name the connection to it."""

FROM_THE_START: Mapping[Path, int] = FrozenMap()


def diagnose(
    logs: Iterable[Path],
    more: Iterable[Signature] = (),
    starts: Mapping[Path, int] = FROM_THE_START,
    *,
    endings: Sequence[Signature] = (),
    warnings: bool = True,
    secondary: bool = True,
) -> Failure | None:
    """Return the cause that the logs of one run contain, or None. Missing and empty logs are skipped.

    `Diagnosis` has the rules. ``more`` are signatures besides those of core. ``endings`` are the messages by which a
    scheduler ends all processes. ``starts`` is the first byte of a log that counts. Without ``warnings``, a signature
    in a warning is never the cause, as for runs that may have succeeded. Without ``secondary``, neither is a signature
    of what follows from the end of a job, as for jobs that the scheduler ended.
    """
    return Diagnosis(RunLogs.of(logs, (*more, *endings), starts), endings, warnings, secondary).cause()


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
    run_logs = RunLogs.of(logs, more, starts)
    if exception := _find_exception(run_logs, run_logs.final_errors, ended=ended):
        return exception
    ended_ranks = [(path, each) for path, errors in run_logs.final_errors.items() for each in errors if each.ended_rank]
    if not ended_ranks:
        return None
    path, error = ended_ranks[-1]
    return run_logs.failure(PROCESS_FAILED, path, error.offset, PROCESS_FAILED.cause)


def _find_exception(logs: RunLogs, errors: Errors, *, ended: bool) -> Failure | None:
    """Return the first exception that another process did not cause, of the rank that ended first if it has one.

    Without ``ended``, the exception need not have ended its rank.
    """
    candidates = [(path, error) for path, found in errors.items() if (error := first_exception(found, ended=ended))]
    if not candidates:
        return None
    for path, found in errors.items():
        of_first = [each for each in found if logs.is_of_first(path, each.line)]
        if error := first_exception(of_first, ended=ended):
            return logs.failure_of_exception(path, error)
    return logs.failure_of_exception(*candidates[0])


def _is_no_consequence(signature: Signature) -> bool:
    return signature.primary and signature.cause not in CRASHES


@attrs.frozen
class Diagnosis:
    """The rules that choose the cause. `cause` lists them in order, and the methods below it contain one rule each.

    A primary signature names a cause. A secondary one follows from something else, such as the timeout of a watchdog.
    """

    logs: RunLogs
    endings: Sequence[Signature]
    warnings: bool
    secondary: bool = True

    def cause(self) -> Failure | None:
        """Return the cause according to the first rule that finds one, or None if the logs contain no signature.

        Of all hits, the earliest one of the first `HitKind` counts.
        """
        search = self.logs.search if self.secondary else self.logs.search.select(_is_no_consequence)
        hits = self.logs.find_hits(search, warnings=self.warnings)
        if not hits:
            return None
        hit = earliest_hit(hits)
        if hit.signature.cause in CRASHES:
            if exception := self._exception_before_crash(hit):
                return exception
            earlier = self._hit_before_crash(hit) or hit
            hits, hit = [earlier if each is hit else each for each in hits], earlier
        if hit.is_warning and (exception := _find_exception(self.logs, self.logs.final_errors, ended=True)):
            return exception  # programs usually survive what they warn about
        if hit.signature.primary:
            failure = self.logs.failure_of_hit(hit)
            return (
                self._explanation(hit)  # the signature yields to another cause, such as a full disk
                or self._after_import(hit, failure.evidence)  # the process survived a failed import
                or self._after_survival(hit)  # the process survived the error
                or failure
            )
        errors = self.logs.errors_above(hits)
        return (
            _find_exception(self.logs, errors, ended=False)  # an exception above the signature explains it
            or self._exception_of_first(hit)  # a launcher reported its process, and the others lost it
            or self._reported_exception()  # a launcher reported the exception
            or self._unknown_process(hit, errors)  # a launcher reported a process, but not why it ended
            or self._ending_after_peer(hit)  # a scheduler ended the processes, and one saw the death of another
            or self._secondary(hit, errors)
        )

    def _explanation(self, hit: Hit) -> Failure | None:
        """Return the cause to which this one yields, such as the full disk that left a damaged file, or None.

        A process on another node may have complained about the file first. Only a secondary signature must be earlier.
        """
        if not hit.signature.yields_to:
            return None
        search = self.logs.search.select(lambda each: each.cause in hit.signature.yields_to)
        found = self.logs.find_hits(search, warnings=False)
        hits = [each for each in found if each.signature.primary or precedes(each, hit)]
        return self.logs.failure_of_hit(earliest_hit(hits)) if hits else None

    def _exception_before_crash(self, hit: Hit) -> Failure | None:
        """Return the first exception above a crash in its log that nothing caught, or None.

        After such an exception, its process and other processes may crash while they exit. Without a label and far
        above, a program that ran before the training printed it.
        """
        errors = attrs.evolve(self.logs, paths=[hit.path]).errors_above([hit])[hit.path]
        close = [each for each in errors if each.label or hit.offset - each.offset <= SIDE_EFFECTS]
        error = first_exception([each for each in close if each.uncaught], ended=True)
        return self._failure_of_exception(hit.path, error) if error else None

    def _hit_before_crash(self, hit: Hit) -> Hit | None:
        """Return the hit above a crash after which processes end: a timeout, or a message of the scheduler, or None."""
        timeouts = self.logs.search.select(lambda each: each.cause == WAITED)
        timeout = timeouts.find(hit.path, self.logs.starts.get(hit.path, 0), warnings=False)
        return timeout if timeout and timeout.offset < hit.offset else ending_above(hit, self.endings)

    def _after_import(self, hit: Hit, evidence: str) -> Failure | None:
        """Return the exception that ended a process after it survived a failed import, or None.

        Without a signature, it counts only if the process continued after the import, and if no launcher raised it. If
        the same error follows, another process without a label printed it.
        """
        if exception_in(evidence.encode()) not in IMPORT_ERRORS:
            return None
        line = line_at(hit.path, hit.offset).raw  # the evidence of a long line is shortened
        rank, text = self._rank(hit.path, line), text_of(line)
        errors = self.logs.final_errors[hit.path]
        later = [error for error in errors if error.offset > hit.offset and text_of(error.line) != text]
        final = first_exception([each for each in later if self._rank(hit.path, each.line) == rank], ended=True)
        if final is None:
            return None
        between = read_part(hit.path, hit.offset, min(final.offset, hit.offset + SIDE_EFFECTS))
        if CHAINED.search(between):
            return None
        if (found := self.logs.find_signature(hit.path, final)) and found.kind is HitKind.PRIMARY:
            return self.logs.failure(found.signature, found.path, found.offset, found.cause)
        ordinary = [each for each in read_tail(between, self.logs.search.is_report) if each.kind == "text"]
        continued = sum(self._rank(hit.path, each.line) == rank for each in ordinary) > AT_THE_END
        is_own = continued and exception_in(final.line) not in OF_LAUNCHERS
        return self.logs.failure_of_exception(hit.path, final) if is_own else None

    def _after_survival(self, hit: Hit) -> Failure | None:
        """Return the known cause of the end of a process that survived an error, such as a failed lookup, or None."""
        continued = hit.signature.survivable and find_continuation(hit.path, hit.offset, hit.signature.needle)
        if not continued:
            return None
        first, start = continued
        others = self.logs.search.select(lambda each: each.primary and not each.survivable)
        if (found := others.find(hit.path, first, warnings=False)) and found.offset < start:
            return self.logs.failure_of_hit(found)
        later = attrs.evolve(self, logs=attrs.evolve(self.logs, starts={**self.logs.starts, hit.path: start}))
        failure = later.cause() or _find_exception(later.logs, later.logs.final_errors, ended=True)
        return failure if failure and not failure.cause.startswith(UNKNOWN) else None

    def _exception_of_first(self, hit: Hit) -> Failure | None:
        """Return the exception that ended the process that launchers report first, or None.

        It may be below the messages of processes that lost this process, because several processes write a log.
        """
        if hit.signature.cause not in LOST_PEER:
            return None
        for path, found in self.logs.final_errors.items():
            own = [each for each in found if each.uncaught and self.logs.is_of_first(path, each.line)]
            if error := first_exception(own, ended=True):
                return self._failure_of_exception(path, error)
        return None

    def _failure_of_exception(self, path: Path, error: TailLine) -> Failure:
        """Return the failure that the secondary signature in an exception describes, or else the exception."""
        secondary = self.logs.search.select(lambda each: not each.primary and not each.report)
        known = attrs.evolve(self.logs, search=secondary).find_signature(path, error)
        return self.logs.failure_of_hit(known) if known else self.logs.failure_of_exception(path, error)

    def _reported_exception(self) -> Failure | None:
        """Return the exception in a launcher's report about the process that failed first, or None."""
        for hit in self.logs.reports:
            if error := find_reported_exception(hit):
                if (known := self.logs.find_signature(hit.path, error)) and not known.signature.report:
                    return self.logs.failure(known.signature, hit.path, error.offset, known.cause, hit.process)
                return self.logs.failure_of_exception(hit.path, error, hit.process)
        return None

    def _unknown_process(self, hit: Hit, errors: Errors) -> Failure | None:
        """Return an unknown cause if a launcher reported before this hit, or in it, that a process ended, or None.

        The evidence is the last error or line of the process that ended first. A message of the scheduler is a cause.
        """
        reports = self.logs.reports
        if not hit.signature.report and (hit.signature in self.endings or not follows_report(hit, reports)):
            return None
        report = reports[0] if reports else hit
        every = ((path, error) for path, found in errors.items() for error in found)
        lines = [(path, each.offset, each.line) for path, each in every if not self.logs.search.is_report(each.line)]
        rank = report.process.rank
        of_rank = self._of_rank(lines, rank) or self._of_rank(self.logs.final_lines(), rank)
        path, offset, _ = (of_rank or lines or [(report.path, report.offset, b"")])[-1]
        return self.logs.failure(report.signature, path, offset, f"{UNKNOWN}: {report.cause}", report.process)

    def _ending_after_peer(self, hit: Hit) -> Failure | None:
        """Return the scheduler's message just below a process that reports the death of another one, or None.

        The scheduler ends processes one after another.
        """
        ending = ending_below(hit, self.endings) if hit.signature.cause == PEER_DIED else None
        return self.logs.failure_of_hit(ending) if ending else None

    def _secondary(self, hit: Hit, errors: Errors) -> Failure:
        """Return the cause of a secondary signature, with the last error above it as evidence if there is one.

        Such an error only reports another process. A scheduler's message is evidence itself, because it is no rank's.
        """
        if hit.signature in self.endings:
            return self.logs.failure_of_hit(hit)
        last = ((path, found[-1].offset) for path, found in errors.items() if found)
        path, offset = next(last, (hit.path, hit.offset))
        return self.logs.failure(hit.signature, path, offset, hit.cause, hit.process)

    def _of_rank(self, lines: Iterable[PlacedLine], rank: int | None) -> list[PlacedLine]:
        return [each for each in lines if rank is not None and self._rank(each[0], each[2]) == rank]

    def _rank(self, path: Path, line: bytes) -> int | None:
        return self.logs.process_of_line(path, line).rank
