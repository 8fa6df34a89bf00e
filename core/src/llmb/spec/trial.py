"""Runs that can be, in place of one that cannot: by them a plugin tells in the same pass what it refuses.

A plugin is asked about runs that can be, so it may divide by what it is given. What is wrong in a spec is left out, so
that the published value counts. Where the division over GPUs hangs on it, the rest is put over every published point,
and over other degrees: one run for each that can be. What the plugin refuses of all of them, in the same words, does
not follow from what was put there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import attrs

from llmb.hookspecs import SchedulerHooks
from llmb.spec.assemble import against_published, assemble_run
from llmb.spec.doubt import touches
from llmb.spec.impossible import DIVISION, MACHINE, STEPS, impossible
from llmb.spec.scalars import LARGEST, PositiveInt
from llmb.spec.tables import ModelTable, ParallelismTable, SpecTables
from llmb.values.frozen import FrozenMap
from llmb.values.model import Accelerator
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Paths, Profile, Run, Target
from llmb.values.workload import SourceMap

ON_NODES = frozenset((*DIVISION, *MACHINE))
"""All keys that say how a model is divided over GPUs, and these over nodes."""

GPUS = ("workload.gpu_type", "workload.dtype", "workload.gpus")
"""The keys that say on which GPUs it runs; where one of them is wrong, it runs on those of a published point."""

DEGREES = (1, 2, 4, 8)
"""Degrees of parallelism in place of wrong ones, besides those that are published, which may all be the same."""

NODES = (1, LARGEST)
"""GPUs of a node where that is not known: every number of GPUs is whole nodes of one, and a part of a node so large."""


@attrs.frozen(kw_only=True)
class Trial:
    """The runs to ask about, without a target only the framework; a refusal at a key in ``doubt`` does not count.

    ``runs`` are made as they are asked for, once: mostly the first one that nothing is refused of ends it.
    """

    runs: Iterable[Run[Any]]
    target: Target[Any] | None
    source_map: SourceMap
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
        """The run as far as the spec says what it is; on published GPUs where those are in doubt."""
        return self._over(self.base, self.spec, doubt)

    def trial(self, options: Any, doubt: frozenset[str], target: Target[Any] | None, source_map: SourceMap) -> Trial:
        """The runs to ask the plugins about, with these options of the framework."""
        right = _without(self.spec, doubt)
        runs = self._possible(right, doubt)
        least = 2 if touches(doubt, ON_NODES) else 1  # of one alone nobody knows what its refusals hang on
        first = [*islice(runs, least)]
        if len(first) < least:
            doubt |= ON_NODES
            bare = attrs.evolve(right, parallelism=ParallelismTable(), model=ModelTable())
            first, runs = [], self._possible(bare, doubt)
        if touches(doubt, ("target.name",)):  # whose other keys nobody knows
            target = None
        paths = target.paths("trial") if target else Paths(run="/runs/trial", cache="/cache")
        asked = (attrs.evolve(run, options=options, paths=paths) for run in chain(first, runs))
        compared = (against_published(run, self.recipe, self.spec) for run in asked)
        return Trial(runs=compared, target=target, source_map=source_map, doubt=doubt)

    def _possible(self, right: SpecTables, doubt: Collection[str]) -> Iterator[Run[Any]]:
        """The run of these tables, or those that take its place where its division is in doubt; each once."""
        candidates = self._candidates(right, doubt) if touches(doubt, ON_NODES) else [(self.base, right)]
        seen = set()
        for point, spec in candidates:
            run = self._over(point, spec, doubt)
            if run and run not in seen and not impossible(run, spec):
                seen.add(run)
                yield run

    def _candidates(self, right: SpecTables, doubt: Collection[str]) -> Iterator[tuple[Point, SpecTables]]:
        """These tables over each published point, and with other degrees and nodes in place of wrong ones."""
        wrong = _names(right.parallelism, "parallelism", doubt)
        for gpus_per_node in NODES if touches(doubt, MACHINE) else (right.gpus_per_node,):
            spec = attrs.evolve(right, gpus_per_node=gpus_per_node)
            yield from ((point, spec) for point in (self.base, *self.recipe.points))
            for degree in DEGREES if wrong else ():
                degrees = attrs.evolve(right.parallelism, **dict.fromkeys(wrong, PositiveInt(degree)))
                yield self.base, attrs.evolve(spec, parallelism=degrees)

    def _over(self, point: Point, spec: SpecTables, doubt: Collection[str]) -> Run[Any] | None:
        """The run of these tables over what is published; null where nobody knows the point's GPU type."""
        workload = spec.workload
        if touches(doubt, GPUS):
            gpus = PositiveInt(point.gpus)
            workload = attrs.evolve(workload, gpu_type=point.gpu_type, dtype=point.dtype, gpus=gpus)
        accelerator = self.accelerators.get(workload.gpu_type)
        single_node = self.scheduler is not None and self.scheduler.single_node
        spec = attrs.evolve(spec, workload=workload)
        return assemble_run(spec, self.recipe, point, accelerator, single_node) if accelerator else None


def _without(spec: SpecTables, doubt: Collection[str]) -> SpecTables:
    """The spec without what is wrong, or may not fit the published value that takes the place of what is wrong."""
    workload, measure, profile = spec.workload, spec.measure, spec.profile
    if touches(doubt, ("workload.steps",)):
        workload = attrs.evolve(workload, steps=None)
    if touches(doubt, (*STEPS, "measure.window")):
        measure = attrs.evolve(measure, window="last")  # which every run has
    if profile and touches(doubt, ("profile", "workload.steps", "workload.gpus")):
        profile = None if touches(doubt, ("profile",)) else Profile(tool=profile.tool)
    return attrs.evolve(
        spec,
        workload=workload,
        parallelism=_right(spec.parallelism, "parallelism", doubt),
        model=_right(spec.model, "model", doubt),
        measure=measure,
        profile=profile,
    )


def _right(table: Any, name: str, doubt: Collection[str]) -> Any:
    """A table of the spec without what is wrong in it."""
    return attrs.evolve(table, **dict.fromkeys(_names(table, name, doubt)))


def _names(table: Any, name: str, doubt: Collection[str]) -> list[str]:
    """The keys of a table that are in doubt."""
    return [field.name for field in attrs.fields(type(table)) if touches(doubt, [f"{name}.{field.name}"])]
