"""Runs that can be, in place of one that cannot: by them a plugin tells in the same pass what it refuses.

A plugin is asked about runs that can be, so it may divide by what it is given. What is wrong is left out or, where the
division over GPUs hangs on it, has several possible values put in its place, one run for each: what the plugin refuses
of all of them does not follow from what was put there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import attrs

from llmb.hookspecs import SchedulerHooks
from llmb.spec.assemble import against_published, assemble_run
from llmb.spec.doubt import touches
from llmb.spec.impossible import DIVISION, MACHINE, STEPS
from llmb.spec.scalars import PositiveInt
from llmb.spec.tables import MeasureTable, ModelTable, ParallelismTable, SpecTables
from llmb.values.frozen import FrozenMap
from llmb.values.model import Accelerator, Parallelism
from llmb.values.recipe import Point, Recipe
from llmb.values.rules import parallelism_faults
from llmb.values.run import Paths, Run, Target
from llmb.values.workload import Written

IN_PLACE = (1, 2, 4, 8)
"""Degrees, and samples of a micro batch, that stand for one that is wrong."""

ON_NODES = frozenset((*DIVISION, *MACHINE))
"""All keys that say how a model is divided over GPUs, and these over nodes."""

OF_PARALLELISM = {f"parallelism.{field.name}": field.name for field in attrs.fields(ParallelismTable)}


@attrs.frozen(kw_only=True)
class Trial:
    """The runs to ask about, without a target only the framework; a refusal at a key in ``doubt`` does not count."""

    runs: tuple[Run[Any], ...]
    target: Target[Any] | None
    written: Written
    doubt: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class StandIns:
    """What takes the place of a combination's wrong values: first of all those of ``base``, a published point."""

    spec: SpecTables
    recipe: Recipe
    base: Point
    accelerators: Mapping[str, Accelerator] = attrs.field(factory=FrozenMap)
    scheduler: SchedulerHooks[Any] | None

    def run(self, doubt: Collection[str]) -> Run[Any] | None:
        """The run as far as the spec says what it is; divided as published where that is in doubt."""
        spec = _as_published(self.spec, self.base) if touches(doubt, DIVISION) else self.spec
        return self._assembled(attrs.evolve(spec, model=self.spec.model), self.base)

    def trial(self, options: Any, doubt: frozenset[str], target: Target[Any] | None, written: Written) -> Trial:
        """The runs to ask the plugins about, with these options of the framework."""
        runs = tuple(self._divided(doubt))
        if not runs:
            doubt |= ON_NODES
            runs = tuple(self._published(doubt))
        paths = target.paths("trial") if target else Paths(run="/runs/trial", cache="/cache")
        runs = tuple(
            against_published(attrs.evolve(run, options=options, paths=paths), self.recipe, self.spec) for run in runs
        )
        if target and not touches(doubt, ON_NODES):
            target = attrs.evolve(target, gpus_per_node=runs[0].gpus_per_node)
        else:
            target = None
        return Trial(runs=runs, target=target, written=written, doubt=doubt)

    def _divided(self, doubt: Collection[str]) -> Iterator[Run[Any]]:
        """The run itself, or, where degrees of its own are in doubt, two and more with others in their place."""
        of_division = [key for key in doubt if touches([key], ON_NODES)]
        names = [OF_PARALLELISM[key] for key in of_division if key in OF_PARALLELISM]
        run = self._assembled(_without(self.spec, doubt), self.base)
        if run is None or len(names) < len(of_division):
            return
        divisions = {run.parallelism: None} if not names else dict.fromkeys(_divisions(run, names, self.base))
        if len(divisions) > 1 or not names:
            yield from (attrs.evolve(run, parallelism=each) for each in divisions)

    def _published(self, doubt: Collection[str]) -> Iterator[Run[Any]]:
        """A published point, or two that differ where it is not known which."""
        known = not touches(doubt, ("workload.gpu_type", "workload.dtype"))
        for base in (self.base,) if known else (self.recipe.points[0], self.recipe.points[-1]):
            if run := self._assembled(_as_published(_without(self.spec, doubt), base), base):
                yield run

    def _assembled(self, spec: SpecTables, base: Point) -> Run[Any] | None:
        accelerator = self.accelerators.get(spec.workload.gpu_type)
        single_node = self.scheduler is not None and self.scheduler.single_node
        return assemble_run(spec, self.recipe, base, accelerator, single_node) if accelerator else None


def _divisions(run: Run[Any], names: list[str], base: Point) -> Iterator[Parallelism]:
    """The run's parallelism with the published degrees, and with others, under these names, as far as they can be."""
    published = {name: getattr(base.parallelism, name) for name in names}
    for degrees in (published, *({name: _degree(name, value) for name in names} for value in IN_PLACE)):
        division = attrs.evolve(run.parallelism, **degrees)
        if "global_batch_size" in names and degrees is not published:
            batch = degrees["global_batch_size"] * division.micro_batch_size * division.data_parallel(run.gpus)
            division = attrs.evolve(division, global_batch_size=max(1, batch))
        if not parallelism_faults(run.model, division, run.gpus, gpus_per_node=run.gpus_per_node):
            yield division


def _degree(name: str, value: int) -> int | None:
    return None if name == "vp" and value == 1 else value


def _as_published(spec: SpecTables, base: Point) -> SpecTables:
    """The spec on the GPUs of a published point, divided and sized as that is."""
    workload = attrs.evolve(spec.workload, gpu_type=base.gpu_type, dtype=base.dtype, gpus=PositiveInt(base.gpus))
    return attrs.evolve(spec, workload=workload, parallelism=ParallelismTable(), model=ModelTable(), gpus_per_node=None)


def _without(spec: SpecTables, doubt: Collection[str]) -> SpecTables:
    """The spec without what is wrong in steps, window and profile, for which the recipe's stand in."""
    if touches(doubt, ("profile",)):
        spec = attrs.evolve(spec, profile=None)
    if touches(doubt, (*STEPS, "measure.window")):
        spec = attrs.evolve(spec, measure=MeasureTable(), workload=attrs.evolve(spec.workload, steps=None))
    return spec
