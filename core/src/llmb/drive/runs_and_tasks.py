"""The runs and tasks of a target group as units of the state machine, with their states."""

from collections.abc import Mapping

from llmb.drive.session_run import SessionRun
from llmb.plan_tasks import TaskPlan
from llmb.planning import RunPlan
from llmb.state_machine.units import State, Unit, UnitState, UnitStates


class RunsAndTasks:
    """Units and states by id. ``skipped`` contains runs that this process no longer drives, each with its error.

    ``ended_here`` has the ids of runs whose end this process recorded.
    """

    def __init__(self, runs: Mapping[str, SessionRun], tasks: Mapping[str, TaskPlan]) -> None:
        self.run_units = {run_id: run_unit(run.plan) for run_id, run in runs.items()}
        self.task_units = {key: task_unit(task) for key, task in tasks.items()}
        self.states = dict.fromkeys([*self.run_units, *self.task_units], State())
        self.skipped: dict[str, Exception] = {}
        self.ended_here: set[str] = set()
        self._runs = runs

    def is_left(self, run_id: str) -> bool:
        """Check whether this process still has to do something for a run."""
        return run_id not in self.skipped and self.states[run_id].stage != "ended"

    def driven(self) -> UnitStates:
        """Return the runs that this process drives and that are not over."""
        run_ids = (run_id for run_id, run in self._runs.items() if run.record.locked and self.is_left(run_id))
        return [UnitState(self.run_units[run_id], self.states[run_id]) for run_id in run_ids]

    def tasks_are_complete(self, unit: Unit) -> bool:
        """Check whether all tasks that a run depends on are complete."""
        endings = [self.states[key].ending for key in unit.depends_on]
        return all(ending is not None and ending.state == "completed" for ending in endings)

    def needed_tasks(self) -> set[str]:
        """Return the tasks of all runs that are neither over nor cancelled, also of those that are skipped."""
        going = [run for run_id, run in self._runs.items() if self.states[run_id].stage not in ("ending", "ended")]
        return {task.key for run in going if not run.record.is_cancelled() for task in run.plan.tasks}

    def awaited(self) -> list[tuple[str, str]]:
        """Return the tasks that driven runs need now, as pairs of a task and a run. A cancelled run waits for none."""
        return [
            (key, unit.id)
            for unit, state in self.driven()
            if state.stage == "preparing" and not state.cancel_requested
            for key in unit.tasks_beside(state.task)  # none if an updated plugin no longer needs the recorded task
            if key == state.task or self.states[key].stage != "ended"
        ]

    def driven_with_tasks(self) -> UnitStates:
        """Return the tasks that the driven runs wait for, and the driven runs."""
        keys = dict.fromkeys(key for key, _ in self.awaited())
        return [*(UnitState(self.task_units[key], self.states[key]) for key in keys), *self.driven()]


def run_unit(plan: RunPlan) -> Unit:
    """Return the unit of a run."""
    concurrent = frozenset(task.key for task in plan.tasks if task.task.concurrent)
    return Unit(id=plan.run.id, kind="run", depends_on=tuple(task.key for task in plan.tasks), concurrent=concurrent)


def task_unit(plan: TaskPlan) -> Unit:
    """Return the unit of a task."""
    return Unit(id=plan.key, kind="task", name=plan.task.kind, runs_on=plan.on, must_exist=not plan.task.work)
