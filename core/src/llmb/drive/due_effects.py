"""The effects that the states of runs and tasks call for, in the order in which one tick performs them."""

from llmb.drive.runs_and_tasks import RunsAndTasks
from llmb.state_machine.decide import EFFECTS, Effect, next_effect
from llmb.state_machine.units import UnitState, UnitStates


class DueEffects:
    """Effects that one tick still has to perform. The tick performs each at most once for a unit."""

    def __init__(self, units: RunsAndTasks) -> None:
        self._units = units
        self._taken: set[tuple[str, Effect]] = set()

    def take(self, only: Effect | None = None) -> tuple[Effect, UnitStates] | None:
        """Return the next effect and its units. Return None if none is left, or if the next one is not ``only``."""
        due: dict[Effect, list[UnitState]] = {}
        for each in self._units.driven_with_tasks():
            effect = next_effect(each.unit, each.state)
            if effect and (each.unit.id, effect) not in self._taken:
                due.setdefault(effect, []).append(each)
        effect = next((each for each in EFFECTS if each in due), None)
        if effect is None or (only and effect != only):
            return None
        self._taken.update((unit.id, effect) for unit, _ in due[effect])
        return effect, due[effect]
