"""Admission: which runs of a target group may be submitted now, given their tasks and the jobs of other runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from llmb.drive.driven_run import isolate
from llmb.drive.effects import EffectRunner
from llmb.drive.job_slots import Claim, JobSlots
from llmb.drive.unit_table import UnitTable
from llmb.state_machine.observations import Observation, UnitObservation
from llmb.state_machine.states import NOT_SUBMITTED, Unit


class Admission:
    """Shows the runs the states of their tasks, so that some become ready to be submitted.

    ``more`` is True if other runs could be admitted immediately. ``without_slot`` contains the runs that wait because
    of ``target.max_jobs``, each with the reason.
    """

    def __init__(self, runner: EffectRunner, units: UnitTable) -> None:
        self.more = False
        self.without_slot: dict[str, str] = {}
        self._runner = runner
        self._units = units
        self._slots = JobSlots({run_id: run.job_limit for run_id, run in runner.runs.items() if run.job_limit})

    @contextmanager
    def observe(self, most: int) -> Iterator[list[UnitObservation]]:
        """Yield what the runs see of their tasks. At most ``most`` runs may be submitted.

        The caller records what follows from it within the block, so that no other process counts jobs meanwhile.
        """
        runs = [unit for unit, state in self._units.driven() if state.stage in NOT_SUBMITTED]
        ready = [unit.id for unit in runs if self._units.has_dependencies(unit)]
        with self._slots.claim(ready, self._units.locked_states(), most) as claim:
            later = set(ready) - claim.admitted - claim.denied - set(claim.errors)
            self.more = bool(later)
            self.without_slot = {run_id: self._slots.describe(run_id) for run_id in claim.denied}
            yield [(unit, self._see(unit, claim)) for unit in runs if unit.id not in later]

    def _see(self, unit: Unit, claim: Claim) -> Observation | Exception:
        if error := claim.errors.get(unit.id):
            return error
        may_submit = unit.id not in claim.denied
        return isolate(partial(self._runner.see_dependencies, unit, self._units.states, may_submit=may_submit))
