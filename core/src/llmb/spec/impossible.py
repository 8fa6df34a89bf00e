"""What cannot be although each value of it can: rules over several keys, asked where none of these is in doubt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from llmb.spec.doubt import touches
from llmb.spec.profile import nsys_only_faults, rank_faults, step_faults
from llmb.spec.tables import SpecTables
from llmb.values.error_text import counted
from llmb.values.errors import Fault
from llmb.values.model_rules import model_faults, node_faults, parallelism_faults
from llmb.values.run import Run

MACHINE = ("workload.gpu_type", "workload.gpus", "target.scheduler", "target.name", "target.gpus_per_node")

DIVISION = ("workload.gpu_type", "workload.dtype", "workload.gpus", "parallelism", "model")
"""The keys by which a model is divided over GPUs: the published point, which they choose, and what is put over it."""

STEPS = ("workload.steps", "profile.tool")
"""The keys that decide how many steps a run has."""

_Rule = Callable[[Run[Any], SpecTables], Iterator[Fault]]


def impossible(run: Run[Any], spec: SpecTables, doubt: Collection[str] = ()) -> list[Fault]:
    """All that cannot be of a run, but for what a key in ``doubt`` has a part in."""
    return [fault for keys, rule in _RULES if not touches(doubt, keys) for fault in rule(run, spec)]


def _model(run: Run[Any], _spec: SpecTables) -> Iterator[Fault]:
    yield from model_faults(run.model)


def _division(run: Run[Any], _spec: SpecTables) -> Iterator[Fault]:
    yield from parallelism_faults(run.model, run.parallelism, run.gpus)


def _machine(run: Run[Any], spec: SpecTables) -> Iterator[Fault]:
    yield from node_faults(run.gpus, run.gpus_per_node)
    if spec.gpus_per_node and run.nodes == 1 and run.gpus > spec.gpus_per_node:
        message = f"{run.gpus} GPUs on one machine that has {spec.gpus_per_node}"
        yield Fault(message=message, key="workload.gpus", expected=f"at most {spec.gpus_per_node}")


def _window(run: Run[Any], spec: SpecTables) -> Iterator[Fault]:
    if run.window == "last" or 0 <= run.window[0] <= run.window[1] <= run.steps:
        return
    whose = "is" if spec.measure.window else "is the recipe's"
    first, last = run.window
    why = f"{first} comes after {last}" if first > last else f"the run has {counted(run.steps, 'step')}"
    expected = f'"last", or the first and last step of a mean, within 0 and {run.steps}'
    yield Fault(message=f"{whose} {[first, last]}, and {why}", key="measure.window", expected=expected)


_RULES: tuple[tuple[tuple[str, ...], _Rule], ...] = (
    (("model",), _model),
    (DIVISION, _division),
    (MACHINE, _machine),
    (("profile.tool",), lambda run, _spec: nsys_only_faults(run)),
    ((*STEPS, "profile.start_step", "profile.stop_step"), lambda run, _spec: step_faults(run)),
    (("workload.gpus", "profile.ranks"), lambda run, _spec: rank_faults(run)),
    ((*STEPS, "measure.window"), _window),
)
