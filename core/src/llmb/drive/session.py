"""A session: runs that this process drives, as a stream of events."""

import resource
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

import attrs

from llmb.drive.notify import Notifier
from llmb.drive.poll_read_and_retry_intervals import PollAndReadIntervals
from llmb.drive.session_run import SessionRun
from llmb.drive.target_group import Groups, group_key
from llmb.drive.target_loop import TargetLoop
from llmb.hosts.host_connections import HostConnections
from llmb.plugins.registry import PluginRegistry
from llmb.records.create_records import SweepRecorder
from llmb.records.record import RunRecord, stamp
from llmb.records.result import RunResult, read_result
from llmb.state_machine.events import Ended, Event, Note
from llmb.values.errors import LlmbError
from llmb.values.run_states import Until
from llmb.values.texts.error_text import describe_error
from llmb.values.types.check_arguments import check_arguments

if TYPE_CHECKING:  # most programs have no event loop
    import asyncio

RECORDING_PAUSE_S = 0.1
"""Pause between two ticks while records of a sweep are still being created."""

SPARE_FILES = 256
"""Files that this process may need to open besides one lock per run."""


@attrs.define
class _Clock:
    """The time since a session began. Each pause counts in full, even if the caller's ``sleep`` returned early."""

    least_s: float = 0.0
    _began_s: float = attrs.field(factory=time.monotonic)

    @property
    def now_s(self) -> float:
        """The seconds since the session began."""
        return max(self.least_s, time.monotonic() - self._began_s)


@attrs.define(eq=False)
class Session:
    """Runs that this process drives. Iterating drives them.

    Leaving the ``with`` or ``async with`` block detaches; the runs continue.
    """

    _records: Sequence[RunRecord] = attrs.field(repr=False)
    _loops: Sequence[TargetLoop] = attrs.field(repr=False)
    _hosts: HostConnections = attrs.field(repr=False)
    _recorder: SweepRecorder | None = attrs.field(repr=False, default=None, kw_only=True)
    _notifier: Notifier = attrs.field(repr=False, factory=Notifier, kw_only=True)
    _notes: list[str] = attrs.field(repr=False, factory=list, kw_only=True)
    _errors: Sequence[Exception] = attrs.field(repr=False, default=(), kw_only=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close the session in a thread, because that waits for hosts. A cancelled task waits for the thread, too."""
        import asyncio  # most programs have no event loop

        closing = asyncio.ensure_future(asyncio.to_thread(self.close))
        await _finish(closing)
        closing.result()

    def close(self) -> None:
        """Detach: finish recording, let other processes drive the runs, and close the connections to all hosts."""
        try:
            if self._recorder:
                self._recorder.finish()
        finally:  # also after a second Ctrl-C
            for loop in self._loops:
                loop.unlock()
                loop.units.skipped.clear()  # this session may drive them again
            self._hosts.close()

    @property
    def run_ids(self) -> list[str]:
        """The ids of the runs, in the order of the sweep."""
        return [record.run_id for record in self._records]

    @property
    def results(self) -> list[RunResult]:
        """State and result of each run, as its record describes it now."""
        if self._recorder:
            self._recorder.finish()
        return [read_result(record) for record in self._records]

    @check_arguments
    def events(self, *, until: Until = "ended", sleep: Callable[[float], None] = time.sleep) -> Iterator[Event]:
        """Drive the runs and yield what happens, until every run has ended or is submitted.

        The events of a run that was recorded before come first, with their old times. ``sleep`` is called between two
        polls with the time in s that it may take. An error of one run or target does not stop the others. At the end
        raise one LlmbError with all errors: TargetError if a target did not respond, else the class of the first
        error. A bug is raised before these.
        """
        with closing(self._steps(until)) as steps:
            for step in steps:
                if isinstance(step, float):
                    sleep(step)
                else:
                    yield step

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    @check_arguments
    def wait(self, *, until: Until = "ended", sleep: Callable[[float], None] = time.sleep) -> list[RunResult]:
        """Drive the runs, ignore the events, and return the results. Raise as `events` does."""
        for _ in self.events(until=until, sleep=sleep):
            pass
        return self.results

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.async_events()

    @check_arguments
    async def async_events(self, *, until: Until = "ended") -> AsyncIterator[Event]:
        """Yield the same events as `events` to a program with an event loop of its own. The work is done in a thread.

        ``async for event in session`` is the same with ``until="ended"``.
        """
        import asyncio  # most programs have no event loop

        steps = self._steps(until)
        work: asyncio.Future[Event | float | None] | None = None
        try:
            while True:
                work = asyncio.ensure_future(asyncio.to_thread(next, steps, None))
                step = await asyncio.shield(work)
                if step is None:
                    return
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    yield step
        finally:
            try:
                if work:  # cancelled during a tick, which continues in its thread
                    await _finish(work)
            finally:
                steps.close()

    def _steps(self, until: Until) -> Generator[Event | float, None, None]:
        """Drive the runs. Yield events, and between two polls the time in s to wait."""
        with self:
            notes, self._notes = self._notes, []
            yield from (stamp(Note(text=text)) for text in notes)
            errors = yield from self._drive(until)
            yield from (stamp(Note(text=text)) for text in self._notifier.finish())
            skipped = [error for loop in self._loops for error in loop.units.skipped.values()]
            raise_worst([*self._errors, *errors, *skipped])

    def _with_notifications(self, loop: TargetLoop, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the events, and start the user's command for each run that ends in this process."""
        for event in events:
            is_end = isinstance(event, Ended) and event.run_id in loop.units.ended_here
            notes = [*self._notifier.notify(loop.units.runs[event.run_id].record)] if is_end else []
            yield event
            yield from (stamp(Note(run_id=event.run_id, text=text)) for text in notes)

    def _drive(self, until: Until) -> Generator[Event | float, None, list[Exception]]:
        """Tick each loop at its own pace. Return the errors that ended a loop."""
        clock, errors = _Clock(), list[Exception]()
        going = [loop for loop in self._loops if not _is_done(loop, until)]
        paces = {loop: PollAndReadIntervals(loop.poll_interval_s, loop.read_interval_s) for loop in going}
        while going:
            now_s = clock.now_s
            for loop in [each for each in going if paces[each].due_s <= now_s]:
                try:
                    yield from self._poll_or_read(loop, paces[loop], clock)
                except Exception as error:  # noqa: BLE001  # raised when the runs on other targets are over
                    errors.append(error)
                    going.remove(loop)
                    loop.unlock()  # another process may resume these runs meanwhile
                    if going:  # the other runs may take hours
                        yield stamp(Note(text=f"{describe_error(error)}; other runs continue"))
            going = [each for each in going if not _is_done(each, until)]
            if going:
                due_s = min(paces[each].due_s for each in going)
                yield max(0.0, due_s - clock.now_s)
                clock.least_s = due_s
        return errors

    def _poll_or_read(self, loop: TargetLoop, pace: PollAndReadIntervals, clock: _Clock) -> Iterator[Event]:
        """Poll the target if a poll is due, else only read its logs. Then plan the next poll and the next read."""
        began_s = clock.now_s
        polls = pace.poll_due_s <= began_s
        yield from self._with_notifications(loop, loop.tick() if polls else loop.read())
        ended_s = clock.now_s
        if polls or loop.changed:
            pace.plan_poll(ended_s, changed=loop.changed or loop.awaits_history)
        pace.plan_read(ended_s, running=loop.running, logs_grew=loop.logs_grew)
        if polls and loop.recording:
            pace.poll_due_s = began_s + RECORDING_PAUSE_S


def ignore_activity(activity: str) -> None:
    """Show nothing of what llmb does before runs are followed."""


def build_session(
    records: Sequence[RunRecord],
    runs: Sequence[SessionRun],
    groups: Groups,
    hosts: HostConnections,
    registry: PluginRegistry,
    notes: list[str],
    *,
    recorder: SweepRecorder | None = None,
    errors: Sequence[Exception] = (),
) -> Session:
    """Return a session that drives the unfinished ``runs`` of each target, with the results of all ``records``.

    ``recorder`` is that of new runs.
    """
    _allow_open_files(len(runs))  # a lock per run
    loops = []
    for key, group in groups.items():
        of_group = [run for run in runs if group_key(run.plan.target) == key]
        loops.append(TargetLoop(group, of_group, registry, recorder))
    return Session(records, loops, hosts, recorder=recorder, notes=notes, errors=errors)


def _allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        highest = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))


async def _finish(work: "asyncio.Future[Any]") -> None:
    """Wait until ``work`` is done, even if the task is cancelled meanwhile. Then raise the CancelledError."""
    import asyncio  # most programs have no event loop

    cancelled = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled


def _is_done(loop: TargetLoop, until: Until) -> bool:
    return loop.submitted if until == "submitted" else loop.ended


def raise_worst(errors: Sequence[Exception]) -> None:
    """Raise a bug with the other errors as notes, else one LlmbError of the worst class with all errors."""
    known = [error for error in errors if isinstance(error, LlmbError)]
    if bugs := [error for error in errors if not isinstance(error, LlmbError)]:
        for other in (*known, *bugs[1:]):
            bugs[0].add_note(f"also: {type(other).__name__}: {other}")
        raise bugs[0]
    if known:
        worst = max(known, key=lambda error: error.exit_code)
        raise type(worst)(*(each for error in known for each in error.faults))
