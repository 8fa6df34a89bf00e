"""The runs and tasks of a target group as units of the state machine, with their states."""

from collections.abc import Iterable

from llmb.drive.session_run import SessionRun
from llmb.plan_runs import RunPlan
from llmb.plan_shared_tasks import TaskPlan
from llmb.state_machine.units import State, Unit, UnitState, UnitStates
from llmb.values.job import Script


class RunsAndTasks:
    """Plans, units and states by id. While a session drives the runs, only `Transitions` changes these.

    ``skipped`` contains runs that this process no longer drives, each with its error. ``submitting_here`` and
    ``ended_here`` have the ids of runs whose submission and whose end this process recorded.
    """

    def __init__(self, runs: Iterable[SessionRun]) -> None:
        self.runs = {run.plan.run.id: run for run in runs}
        self.task_plans: dict[str, TaskPlan] = {}
        for run in self.runs.values():
            for task in run.plan.tasks:
                self.task_plans.setdefault(task.key, task)
        self.run_units = {run_id: _run_unit(run.plan) for run_id, run in self.runs.items()}
        self.task_units = {key: _task_unit(task) for key, task in self.task_plans.items()}
        self.states = dict.fromkeys([*self.run_units, *self.task_units], State())
        self.skipped: dict[str, Exception] = {}
        self.submitting_here: set[str] = set()
        self.ended_here: set[str] = set()

    def script(self, unit: Unit) -> Script:
        """Return the script of a run or a task."""
        return self.task_plans[unit.id].script if unit.kind == "task" else self.runs[unit.id].plan.script

    def is_left(self, run_id: str) -> bool:
        """Check whether this process still has to do something for a run."""
        return run_id not in self.skipped and self.states[run_id].stage != "ended"

    def left(self) -> dict[str, SessionRun]:
        """Return the runs for which this process still has to do something."""
        return {run_id: run for run_id, run in self.runs.items() if self.is_left(run_id)}

    def driven(self) -> UnitStates:
        """Return the runs that this process drives and that are not over."""
        locked = (run_id for run_id, run in self.left().items() if run.record.locked)
        return [UnitState(self.run_units[run_id], self.states[run_id]) for run_id in locked]

    def tasks_are_complete(self, unit: Unit) -> bool:
        """Check whether all tasks that a run depends on are complete."""
        endings = [self.states[key].ending for key in unit.depends_on]
        return all(ending is not None and ending.state == "completed" for ending in endings)

    def needed_tasks(self) -> set[str]:
        """Return the tasks of all runs that are neither over nor cancelled, also of those that are skipped."""
        going = [run for run_id, run in self.runs.items() if self.states[run_id].stage not in ("ending", "ended")]
        return {task.key for run in going if not run.record.is_cancel_requested() for task in run.plan.tasks}

    def awaited(self) -> list[tuple[str, str]]:
        """Return the tasks that driven runs need now, as pairs of a task and a run. A cancelled run waits for none."""
        return [
            (key, unit.id)
            for unit, state in self.driven()
            if state.stage == "preparing" and not state.cancel_requested_ns
            for key in unit.tasks_beside(state.task)  # none if an updated plugin no longer needs the recorded task
            if key == state.task or self.states[key].stage != "ended"
        ]

    def driven_with_tasks(self) -> UnitStates:
        """Return the tasks that the driven runs wait for, and the driven runs."""
        keys = dict.fromkeys(key for key, _ in self.awaited())
        return [*(UnitState(self.task_units[key], self.states[key]) for key in keys), *self.driven()]


def _run_unit(plan: RunPlan) -> Unit:
    concurrent = frozenset(task.key for task in plan.tasks if task.task.concurrent)
    return Unit(id=plan.run.id, kind="run", depends_on=tuple(task.key for task in plan.tasks), concurrent=concurrent)


def _task_unit(plan: TaskPlan) -> Unit:
    return Unit(id=plan.key, kind="task", name=plan.task.kind, runs_on=plan.on, must_exist=not plan.task.work)
