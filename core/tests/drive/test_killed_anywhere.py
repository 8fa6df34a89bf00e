"""llmb is killed at every boundary: each job runs once, and the record agrees with the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from attrs import define, evolve, field

from llmb.drive.session import Session
from llmb.values.errors import LlmbError, TargetError

from .fake_cluster import JobPlan
from .fake_process import Disk, Killed, Process
from .world import Scenario, World

ANY = "completed|failed"
TWO = {"a": ("image",), "b": ("image",)}
DONE = {"a": "completed", "b": "completed"}
SCENARIOS = {
    "two runs share a task": Scenario(
        plans=lambda: {"image": JobPlan(), "a": JobPlan(), "b": JobPlan(steps=1)}, needs=TWO, ends=DONE
    ),
    "the task fails": Scenario(
        plans=lambda: {"image": JobPlan(end="failed"), "a": JobPlan(), "b": JobPlan()},
        needs=TWO,
        ends={"a": "failed", "b": "failed"},
        jobs={"a": {0}, "b": {0}, "image": {1, 2, 3}},  # a process that attaches later tries again
    ),
    "a node fails under the task": Scenario(
        plans=lambda: {"image": JobPlan(lost_once=True), "a": JobPlan(), "b": JobPlan()},
        needs=TWO,
        ends=DONE,
        jobs={"image": {2}},
    ),
    "the job is requeued": Scenario(
        plans=lambda: {"a": JobPlan(requeue_at=1, lag=1)}, needs={"a": ()}, ends={"a": "completed"}
    ),
    "one fails and one is rejected": Scenario(
        plans=lambda: {"a": JobPlan(end="out of memory"), "b": JobPlan(refused="no FP8"), "c": JobPlan(lag=2)},
        needs={"a": (), "b": (), "c": ()},
        ends={"a": "failed", "b": "failed", "c": "completed"},
        jobs={"b": {0}},
    ),
    "accounting lags behind the queue": Scenario(
        plans=lambda: {"a": JobPlan(steps=1, history_lag=4), "b": JobPlan(end="failed"), "c": JobPlan(history_lag=2)},
        needs={"a": (), "b": (), "c": ()},
        ends={"a": "completed", "b": "failed", "c": "completed"},
        secret=("a", "c"),
    ),
    "one never starts": Scenario(
        plans=lambda: {"a": JobPlan(never=True), "b": JobPlan()},
        needs={"a": (), "b": ()},
        ends={"a": "failed", "b": "completed"},
    ),
    "detached, then attached": Scenario(
        plans=lambda: {"image": JobPlan(), "a": JobPlan(), "b": JobPlan()}, needs=TWO, ends=DONE, detach=True
    ),
    "cancelled while it runs": Scenario(
        plans=lambda: {"a": JobPlan(steps=9), "b": JobPlan()},
        needs={"a": (), "b": ()},
        ends={"a": "cancelled", "b": "completed"},
        cancels={3: ["a"]},
        jobs={"a": {0, 1}},  # a run that a full disk held back may be cancelled before its job exists
    ),
    "the last run that waits for a task is cancelled": Scenario(
        plans=lambda: {"image": JobPlan(steps=9), "a": JobPlan(), "b": JobPlan()},
        needs=TWO,
        ends={"a": "cancelled", "b": "cancelled"},
        jobs={"a": {0}, "b": {0}, "image": {0, 1}},
        cancels={2: ["a"], 4: ["b"]},
    ),
    "runs and tasks with secrets": Scenario(
        plans=lambda: {"image": JobPlan(), "data": JobPlan(), "a": JobPlan(), "b": JobPlan(refused="no FP8")},
        needs={"a": ("image", "data"), "b": ("image",)},
        ends={"a": "completed", "b": "failed"},
        jobs={"b": {0}},
        secret=("image", "data", "a", "b"),
        on_host=("data",),
    ),
}
# the first records of a sweep are few here: see replace_what_is_not_simulated
SCENARIOS["jobs run while the rest of the sweep is recorded"] = Scenario(
    plans=lambda: {run_id: JobPlan(steps=1) for run_id in "abcde"},
    needs=dict.fromkeys("abcde", ()),
    ends=dict.fromkeys("abcde", "completed"),
)
SCENARIOS["two jobs at a time"] = Scenario(
    plans=lambda: {"image": JobPlan(), "a": JobPlan(lag=1), "b": JobPlan(end="failed"), "c": JobPlan(), "d": JobPlan()},
    needs={"a": (), "b": ("image",), "c": ("image",), "d": ()},
    ends={"a": "completed", "b": "failed", "c": "completed", "d": "completed"},
    max_jobs=2,
)
SCENARIOS["two tasks at the same time"] = Scenario(
    plans=lambda: {
        "image": JobPlan(),
        "x": JobPlan(steps=3),
        "y": JobPlan(lost_once=True),
        "a": JobPlan(),
        "b": JobPlan(),
    },
    needs={"a": ("image", "x", "y"), "b": ("x", "y")},
    ends={"a": "completed", "b": "completed"},
    jobs={"y": {2}},
    concurrent=("y",),
    secret=("y",),
)
each_scenario = pytest.mark.parametrize("name", SCENARIOS)
some_then_all = pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
some_then_many = pytest.mark.parametrize("step", [37, pytest.param(3, marks=pytest.mark.slow)], ids=["some", "many"])


def boundaries(scenario: Scenario, disk: Disk, step: int, kinds: tuple[str, ...] = ("",)) -> list[tuple[int, str]]:
    """Return every ``step``-th boundary of these kinds that a process passes if nothing happens to it."""
    process = Process()
    with World(scenario, disk) as world:
        world.drive(process)
        assert world.problems() == []
    return every(step, [each for each in enumerate(process.boundaries, 1) if each[1].startswith(kinds)])


def every(step: int, moments: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return every ``step``-th moment, and at least one."""
    assert moments, "nothing can happen to this process"
    step = min(step, len(moments))
    return moments[step // 2 :: step]


@contextmanager
def disturbed(scenario: Scenario, disk: Disk, how: str) -> Iterator[World]:
    """Simulate a scenario. What the block does to the first processes must not change how the runs end.

    Other processes then finish the runs. Raise AssertionError if one of the runs does not end as it should.
    """
    with World(scenario, disk) as world:
        try:
            with suppress(Killed, KeyboardInterrupt, LlmbError):
                yield world
            world.finish()
            assert world.problems() == []
        except BaseException as error:
            error.add_note(how)
            raise


# One process that is killed, interrupted or loses its power


@some_then_all
@each_scenario
def test_killed_at_every_boundary(name: str, step: int, disk: Disk) -> None:
    for number, boundary in boundaries(SCENARIOS[name], disk, step):
        how = f"killed at boundary {number}, {boundary}"
        with disturbed(SCENARIOS[name], disk, how) as world, pytest.raises(Killed):
            world.drive(Process(kill_at=number))


@some_then_many
@each_scenario
def test_interrupted_at_every_boundary(name: str, step: int, disk: Disk) -> None:
    """After Ctrl-C the process itself may continue: it holds no lock."""
    for number, boundary in boundaries(SCENARIOS[name], disk, step):
        with disturbed(SCENARIOS[name], disk, f"Ctrl-C at boundary {number}, {boundary}") as world:
            process = Process(interrupt_at=number)
            with pytest.raises(KeyboardInterrupt):
                world.drive(process)
            assert process.locks_left == 0


@some_then_many
@pytest.mark.parametrize("keep", [0.0, 0.5])
@each_scenario
def test_the_power_fails_at_every_boundary(name: str, keep: float, step: int, disk: Disk) -> None:
    for number, boundary in boundaries(SCENARIOS[name], disk, step):
        with disturbed(SCENARIOS[name], disk, f"power failure at boundary {number}, {boundary}") as world:
            with pytest.raises(Killed):
                world.drive(Process(kill_at=number))
            world.fail_power(keep)


@some_then_many
@each_scenario
def test_the_disk_is_full_at_every_boundary(name: str, step: int, disk: Disk) -> None:
    """The run whose record cannot be written is left as it is, and the others continue."""
    writes = ("before write", "within write", "before sync", "before replace")
    for number, boundary in boundaries(SCENARIOS[name], disk, step, writes):
        with disturbed(SCENARIOS[name], disk, f"full disk at boundary {number}, {boundary}") as world:
            world.drive(Process(full_at=number))
        assert world.finished


@some_then_all
@each_scenario
def test_killed_twice(name: str, step: int, disk: Disk) -> None:
    for first, _ in boundaries(SCENARIOS[name], disk, 11 * step):
        for second in range(1 + first % 13, 80, 13):
            with disturbed(SCENARIOS[name], disk, f"killed at boundaries {first} and {second}") as world:
                with suppress(Killed):
                    world.drive(Process(kill_at=first))
                world.drive(Process(kill_at=second))
            assert world.finished


# A target that fails


@some_then_all
@pytest.mark.parametrize("error", ["away", "not done", "done"])
@pytest.mark.parametrize("length", [1, 3])
@each_scenario
def test_every_command_fails(name: str, error: str, length: int, step: int, disk: Disk) -> None:
    with World(SCENARIOS[name], disk) as world:
        world.drive(Process())
        commands = every(step, list(enumerate(world.cluster.commands, 1)))
    cancelled = {run_id: {0, 1} for run_ids in world.scenario.cancels.values() for run_id in run_ids}
    scenario = evolve(world.scenario, jobs=cancelled | {**world.scenario.jobs})  # or cancelled before its submission
    for number, command in commands:
        with disturbed(scenario, disk, f"command {number} failed, {command}") as world:
            world.tasks_may_continue = True
            world.drive(Process(), dict.fromkeys(range(number, number + length), error))
        assert world.finished


@some_then_all
@pytest.mark.parametrize("length", [1, 3])
@each_scenario
def test_every_command_is_refused(name: str, length: int, step: int, disk: Disk) -> None:
    """A run that llmb started and could not submit fails, and no later process submits it."""
    with World(SCENARIOS[name], disk) as world:
        world.drive(Process())
        commands = every(step, list(enumerate(world.cluster.commands, 1)))
    ends = {run_id: f"{end}|failed" for run_id, end in world.scenario.ends.items()}
    scenario = evolve(world.scenario, ends=ends, jobs={unit: range(4) for unit in world.cluster.plans})
    for number, command in commands:
        with disturbed(scenario, disk, f"command {number} was refused, {command}") as world:
            world.tasks_may_continue = True
            with suppress(LlmbError):
                world.drive(Process(), dict.fromkeys(range(number, number + length), "refused"))
            without_job = [run_id for run_id in world.plans if not world.cluster.jobs_of(run_id)]
        assert not any(map(world.cluster.jobs_of, without_job)), f"submitted after command {number} was refused"


@pytest.mark.slow
def test_a_command_fails_and_llmb_is_killed(disk: Disk) -> None:
    scenario = SCENARIOS["two runs share a task"]
    for number in range(1, 25, 2):
        for kill_at in range(1, 170, 9):
            with disturbed(scenario, disk, f"command {number} failed, killed at boundary {kill_at}") as world:
                world.drive(Process(kill_at=kill_at), {number: "done"})
            assert world.finished


# A user and other processes


@some_then_all
@pytest.mark.parametrize("kill_after", [0, 1, 4, 9])
def test_cancelled_at_every_boundary_and_killed_besides(kill_after: int, step: int, disk: Disk) -> None:
    """A run that is cancelled during its submission either never has a job, or its job ends."""
    scenario = evolve(
        SCENARIOS["two runs share a task"],
        ends={"a": "cancelled|completed", "b": "completed"},
        jobs={"a": {0, 1}, "image": {1, 2}},
        secret=("image", "a"),
    )
    for number, boundary in boundaries(scenario, disk, step):
        with disturbed(scenario, disk, f"cancelled at boundary {number}, {boundary}") as world:
            cancel = at(number, lambda world=world: world.request_cancel("a"))
            world.drive(Process(kill_at=kill_after and number + kill_after, between=cancel))
        assert world.finished


@some_then_many
@pytest.mark.parametrize("end", ["detaches", "is killed"])
@pytest.mark.parametrize("kill_after", [None, 0, 3])
@pytest.mark.parametrize("ticks", [2, 12])
def test_another_process_drives_the_same_runs(
    ticks: int, kill_after: int | None, end: str, step: int, disk: Disk
) -> None:
    scenario = SCENARIOS["two runs share a task"]
    for number, boundary in boundaries(scenario, disk, step):
        with disturbed(scenario, disk, f"another process at boundary {number}, {boundary}") as world:
            other = at(number, lambda world=world: attach_for(world, ticks, killed=end == "is killed"))
            world.drive(Process(kill_at=0 if kill_after is None else number + kill_after, between=other))
        assert world.finished


def at(number: int, act: Callable[[], None]) -> Callable[[int], None]:
    """Return a function that acts at this boundary."""
    return lambda passed: act() if passed == number else None


def attach_for(world: World, ticks: int, *, killed: bool) -> None:
    """Let another process drive the runs for some ticks, if it finds them. Then it detaches or is killed."""
    process, slept = Process(), 0

    def sleep(_pause_s: float) -> None:
        nonlocal slept
        slept += 1
        world.wait()
        if slept == ticks:
            process.dead = killed
            raise KeyboardInterrupt

    ends = suppress(KeyboardInterrupt, Killed, TargetError)
    if world.recorded:
        with world.disk.running(process, world.home), ends, world.session(process) as session:
            session.wait(sleep=sleep)


SHARED = {
    "the task is complete": JobPlan(),
    "the task fails": JobPlan(end="failed"),
    "a node fails under the task": JobPlan(lost_once=True),
    "the task is rejected": JobPlan(refused="no FP8"),
    "the task never starts": JobPlan(never=True),
}


@some_then_all
@pytest.mark.parametrize("what", SHARED)
def test_another_home_needs_the_same_task(what: str, step: int, disk: Disk) -> None:
    """Both drive their runs at the same time. The task has one job at a time, which finds its secrets."""
    plans = {"image": SHARED[what], "a": JobPlan(), "b": JobPlan(), "c": JobPlan()}
    jobs = {"image": range(6), "a": (0, 1), "b": (0, 1), "c": (0, 1)}
    mine = Scenario(plans=lambda: plans, needs=TWO, ends=dict.fromkeys("ab", ANY), jobs=jobs, secret=("image",))
    theirs = evolve(mine, needs={"c": ("image",)}, ends={"c": ANY})
    for number, boundary in boundaries(mine, disk, step):
        how = f"another home at boundary {number}, {boundary}"
        with disturbed(mine, disk, how) as world, World(theirs, disk, world.cluster) as other:
            companion = Companion(other)
            world.meanwhile = companion.tick
            with suppress(TargetError):
                world.drive(Process(between=at(number, companion.tick)))
            companion.process.end()
            world.finish()
            other.finish()
            assert other.problems() == []
            assert {other.record("c").state().run_state} == {world.record(run_id).state().run_state for run_id in "ab"}


@define
class Companion:
    """Another process that drives runs at the same time: a tick whenever it is called."""

    world: World
    process: Process = field(factory=Process)
    session: Session | None = None

    def tick(self) -> None:
        with self.world.disk.acting(self.process, self.world.home), suppress(TargetError):
            self.session = self.session or self.world.session(self.process)
            for loop in self.session._loops:
                self.world.events += loop.tick()
