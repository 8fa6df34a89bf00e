"""A session: its pace, its events for programs with an event loop, and the locks that it frees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from attrs import evolve

from llmb.drive.poll_read_and_retry_intervals import LOCAL_READ_INTERVAL_S, REMOTE_READ_INTERVAL_S, PollAndReadIntervals
from llmb.drive.session import Session
from llmb.drive.target_loop import TargetLoop
from llmb.state_machine.events import Ended, Event, Note, Progress
from llmb.values.causes import Cause
from llmb.values.errors import UnreadableFileError
from llmb.values.job import Script
from llmb.values.job_status import JobHandle
from llmb.values.steps import Notice

from .fake_cluster import FakeHost, FakeScheduler, JobPlan
from .fake_process import Disk, Process
from .world import Scenario, World

TWO = Scenario(
    plans=lambda: {"image": JobPlan(), "a": JobPlan(), "b": JobPlan(steps=3)},
    needs={"a": ("image",), "b": ("image",)},
    ends={"a": "completed", "b": "completed"},
)


@pytest.mark.parametrize(
    ("changes", "interval_s", "pauses_s"),
    [
        ("yes no no yes no", (0.1, 0.2), [0.1, 0.15, 0.2, 0.1, 0.15]),
        ("no no yes no no", (2.0, 30.0), [3.0, 4.5, 2.0, 3.0, 4.5]),
    ],
)
def test_the_pause_between_polls_grows_while_no_state_changes(
    changes: str, interval_s: tuple[float, float], pauses_s: list[float]
) -> None:
    pace = PollAndReadIntervals(interval_s)
    found = []
    for change in changes.split():
        pace.plan_poll(100.0, changed=change == "yes")
        found.append(pace.poll_due_s - 100.0)
    assert found == pytest.approx(pauses_s)


@pytest.mark.parametrize(
    ("remote", "pauses_s"),
    [(False, [0.25, 0.25, 0.375, 0.5625, 0.25]), (True, [2.0, 2.0, 3.0, 4.5, 2.0])],
    ids=["this machine", "over SSH"],
)
def test_a_growing_log_is_read_often_and_does_not_change_the_pause_between_polls(
    remote: bool, pauses_s: list[float]
) -> None:
    pace = PollAndReadIntervals((2.0, 30.0), REMOTE_READ_INTERVAL_S if remote else LOCAL_READ_INTERVAL_S)
    pace.plan_poll(100.0, changed=False)
    found = []
    for logs_grew in (True, True, False, False, True):
        pace.plan_read(100.0, running=True, logs_grew=logs_grew)
        found.append(pace.read_due_s - 100.0)
    assert found == pytest.approx(pauses_s)
    assert pace.poll_due_s == 103.0
    pace.plan_read(100.0, running=False, logs_grew=False)
    assert pace.due_s == 103.0


def test_while_a_log_grows_it_is_read_between_two_polls(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TargetLoop, "poll_interval_s", (1000.0, 4000.0))
    monkeypatch.setattr("llmb.drive.session.RECORDING_PAUSE_S", 1000.0)
    runs = Scenario(plans=lambda: {"a": JobPlan(steps=30)}, needs={"a": ()}, ends={"a": "completed"})
    with World(runs, disk) as world:
        world.drive(Process())
        assert world.problems() == []
        commands = world.cluster.commands
        assert commands.count("read") > 30
        assert commands.count("poll") < 6


def test_runs_recorded_during_a_submission_are_submitted_before_the_next_poll(disk: Disk) -> None:
    run_ids = "abcdefg"
    runs = Scenario(
        plans=lambda: {run_id: JobPlan() for run_id in run_ids},
        needs=dict.fromkeys(run_ids, ()),
        ends=dict.fromkeys(run_ids, "completed"),
    )

    def create_records(_passed: int) -> None:
        if process.boundaries[-1] == "before submit":
            for call in process.calls:
                call.run()

    process = Process(between=create_records)
    with World(runs, disk) as world:
        with disk.running(process, world.home), world.session(process) as session:
            session.wait(until="submitted", sleep=world.wait)
        assert set(world.cluster.commands) == {"submit"}
        assert len(world.cluster.jobs) == len(run_ids)
        world.finish()
        assert world.problems() == []


def test_a_job_that_is_rejected_is_in_no_later_batch(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    submit, submitted = FakeScheduler.submit, list[str]()

    def note(self: FakeScheduler, scripts: Sequence[Script], host: object) -> Mapping[str, JobHandle]:
        submitted.extend(script.id for script in scripts)
        return submit(self, scripts, host)

    monkeypatch.setattr(FakeScheduler, "submit", note)
    runs = Scenario(
        plans=lambda: {run_id: JobPlan(refused="no FP8" if run_id == "a" else "") for run_id in "abcde"},
        needs=dict.fromkeys("abcde", ()),
        ends={"a": "failed", **dict.fromkeys("bcde", "completed")},
        jobs={"a": {0}},
    )
    with World(runs, disk) as world:
        world.drive(Process())
        assert sorted(submitted) == ["a", "b", "c", "d", "e"]
        assert world.problems() == []


def test_an_event_loop_gets_the_same_events_at_the_same_pace(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TargetLoop, "poll_interval_s", (1000.0, 4000.0))
    monkeypatch.setattr("llmb.drive.session.RECORDING_PAUSE_S", 1000.0)
    plain: list[float] = []
    awaited: list[float] = []
    with World(TWO, disk) as world, disk.running(process := Process(), world.home):
        expected = list(world.session(process).events(sleep=wait_in(world, plain)))
    with World(TWO, disk) as world, disk.running(process := Process(), world.home):
        wait = wait_in(world, awaited)

        async def sleep(pause_s: float) -> None:
            wait(pause_s)

        async def collect() -> list[Event]:
            with monkeypatch.context() as patch:
                patch.setattr(asyncio, "sleep", sleep)
                return [event async for event in world.session(process)]

        found = asyncio.run(collect())
        assert process.locks == set()
    assert [evolve(event, time=0.0) for event in found] == [evolve(event, time=0.0) for event in expected]
    assert any(isinstance(event, Progress) for event in found)
    assert awaited == pytest.approx(plain, abs=5.0)
    assert max(plain) > 1000.0


def test_an_event_loop_may_submit_and_detach(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def submit(session: Session) -> list[Event]:
        async def sleep(_pause_s: float) -> None:
            world.wait()

        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "sleep", sleep)
            return [event async for event in session.async_events(until="submitted")]

    with World(TWO, disk) as world:
        with disk.running(process := Process(), world.home):
            events = asyncio.run(submit(world.session(process)))
            assert process.locks == set()
        assert not world.ended
        assert not {event.run_id for event in events if isinstance(event, Ended)} >= {"a", "b"}
        assert all(map(world.cluster.jobs_of, ("a", "b")))
        world.finish()
        assert world.problems() == []


@pytest.mark.parametrize(
    ("cause", "end"),
    [
        ("preempted", "attempt 0 was preempted; "),
        ("node failure", "a node of attempt 0 failed; "),
        ("cancelled", ""),
        ("", ""),
    ],
)
def test_a_requeued_job_is_explained_once(cause: Cause, end: str, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = SimpleNamespace(feed=lambda *_: (), close=lambda: [Notice(kind=cause)] if cause else [])
    monkeypatch.setattr(FakeScheduler, "parse_log", lambda *_, **__: messages)
    runs = Scenario(plans=lambda: {"a": JobPlan(requeue_at=2, steps=4)}, needs={"a": ()}, ends={"a": "completed"})
    with World(runs, disk) as world, disk.running(process := Process(), world.home):
        events = list(world.session(process).events(sleep=world.wait))
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == [f"a: {end}the scheduler requeued the job, and llmb follows attempt 1"]
    shown = [event.detail for event in events if isinstance(event, Progress) and event.state in ("queued", "running")]
    assert list(dict.fromkeys(shown)) == ["", "attempt 1", "copying logs"]


def test_the_logs_of_an_attempt_that_ended_while_no_process_followed_are_copied_to_their_end(disk: Disk) -> None:
    runs = Scenario(plans=lambda: {"a": JobPlan(requeue_at=6, steps=9)}, needs={"a": ()}, ends={"a": "completed"})
    with World(runs, disk) as world:
        with disk.running(process := Process(), world.home), world.session(process) as session:
            list(session.events(until="submitted", sleep=world.wait))
        while world.cluster.jobs[0].attempt == 0:
            world.cluster.tick()
        world.finish()
        copy = world.home / "runs" / "a" / "logs" / "a.0.log"
        assert copy.read_bytes() == world.cluster.files["/work/runs/a/a.0.log"]
        assert world.problems() == []


@pytest.mark.parametrize("names", ["b", "abc"])
def test_a_log_that_cannot_be_read_holds_up_no_other_run(
    names: str, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Scenario(
        plans=lambda: {name: JobPlan(steps=5) for name in names},
        needs=dict.fromkeys(names, ()),
        ends=dict.fromkeys(names, "completed"),
    )
    read = FakeHost.read
    reason = "cannot read /work/runs/b/b.0.log: Input/output error"

    def read_or_fail(host: FakeHost, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        if "/work/runs/b/b.0.log" in offsets and world.ticks < 20:
            raise UnreadableFileError(reason)
        return read(host, offsets)

    monkeypatch.setattr(FakeHost, "read", read_or_fail)
    with World(runs, disk) as world:
        ended: dict[str, int] = {}
        notes: list[str] = []
        shown: list[str] = []
        with disk.running(process := Process(), world.home):
            for event in world.session(process).events(sleep=world.wait):
                ended |= {event.run_id: world.ticks} if isinstance(event, Ended) else {}
                notes += [event.text] if isinstance(event, Note) else []
                shown += [event.detail] if isinstance(event, Progress) and event.run_id == "b" else []
        assert shown.count("copying logs") == 0
        assert ended.pop("b") >= 20
        assert all(tick < 20 for tick in ended.values())
        assert notes == [f"b: {reason}; llmb tries again"]
        assert world.problems() == []


def test_a_file_of_a_job_that_cannot_be_read_is_noted(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    script, read = Scenario._script, FakeHost.read
    unreadable = "/work/runs/b/provenance"

    def read_or_fail(host: FakeHost, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        if unreadable in offsets:
            raise UnreadableFileError(f"cannot read {unreadable}: Input/output error")
        return read(host, offsets)

    monkeypatch.setattr(FakeHost, "read", read_or_fail)
    monkeypatch.setattr(
        Scenario,
        "_script",
        lambda *words, **more: evolve(each := script(*words, **more), provenance_file=f"{each.directory}/provenance"),
    )
    with World(TWO, disk) as world:
        world.cluster.files["/work/runs/a/provenance"] = b"driver=1\n"
        with disk.running(process := Process(), world.home):
            events = list(world.session(process).events(sleep=world.wait))
        assert {event.run_id: event.state for event in events if isinstance(event, Ended)} == TWO.ends
        [note] = [event.text for event in events if isinstance(event, Note)]
        assert note == f"cannot read {unreadable}: Input/output error; the run has no data of this file"
        assert world.record("a").spec()["provenance"] == {"driver": "1"}


def wait_in(world: World, pauses: list[float]) -> Callable[[float], None]:
    def wait(pause_s: float) -> None:
        pauses.append(pause_s)
        world.wait()

    return wait


@pytest.mark.parametrize("boundary", range(1, 90, 4))
def test_a_consumer_that_is_cancelled_during_a_tick_leaves_no_lock(boundary: int, disk: Disk) -> None:
    with World(TWO, disk) as world:
        asyncio.run(cancel_at(boundary, world))
        world.finish()
        assert world.problems() == []


async def cancel_at(boundary: int, world: World) -> None:
    """Cancel the consumer of a session while a thread is within a tick."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    def cancel(passed: int) -> None:
        if passed >= boundary and tasks:
            loop.call_soon_threadsafe(tasks[0].cancel)

    process = Process(between=cancel)

    async def consume() -> None:
        async for _ in world.session(process):
            world.wait()

    with world.disk.running(process, world.home):
        tasks.append(asyncio.create_task(consume()))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert process.locks == set()


def test_leaving_the_block_detaches_and_another_process_follows_the_jobs(disk: Disk) -> None:
    with World(TWO, disk) as world:
        with disk.running(process := Process(), world.home):
            with world.session(process) as session:
                for _ in session.events(sleep=world.wait):
                    if world.cluster.jobs_of("a"):
                        break
            assert process.locks == set()
        assert not world.ended
        world.finish()
        assert world.problems() == []


@pytest.mark.parametrize("cancelled", [False, True])
def test_leaving_an_async_block_detaches_even_if_its_task_is_cancelled(cancelled: bool, disk: Disk) -> None:
    async def follow(session: Session) -> None:
        async with session as entered:
            assert entered is session
            if cancelled:
                task = asyncio.current_task()
                assert task
                task.cancel()
        assert not cancelled

    with World(TWO, disk) as world:
        with disk.running(process := Process(), world.home):
            session = world.session(process)
            assert process.locks != set()
            with pytest.raises(asyncio.CancelledError) if cancelled else nullcontext():
                asyncio.run(follow(session))
            assert process.locks == set()
        assert not world.ended
        world.finish()
        assert world.problems() == []


@pytest.mark.parametrize("runs", [3, 30])
def test_many_runs_and_tasks_are_polled_with_one_command_a_tick(runs: int, disk: Disk) -> None:
    tasks = [f"image{number}" for number in range(3)]
    needs = {f"run{number:02}": (tasks[number % 3],) for number in range(runs)}
    plans = {unit: JobPlan(queue=2, steps=2) for unit in [*tasks, *needs]}
    scenario = Scenario(plans=lambda: dict(plans), needs=needs, ends=dict.fromkeys(needs, "completed"))
    with World(scenario, disk) as world:
        world.drive(Process())
        assert world.problems() == []
        commands = world.cluster.commands
        assert commands.count("poll") <= world.ticks + 1
        assert commands.count("read") <= 3 * world.ticks  # the logs of jobs that are over are read to their end
