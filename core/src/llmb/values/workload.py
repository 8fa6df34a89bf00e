"""A workload: the runs that one spec describes, ready to be planned."""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from llmb.values.copy_with_changes import with_changes
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap, freeze
from llmb.values.recipe import RecipeCopy
from llmb.values.run import Run, Target
from llmb.values.types.check_types import typed_fields
from llmb.values.types.numbers import PositiveInt


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class SourceMap:
    """The places where the keys of a run are written, so that errors name the author's own words.

    ``places`` has the keys that are not in ``file`` under their own names, each with a file and a key. For example,
    ``workload.gpus`` of the second run may be ``workload.gpus[1]``, and ``target.account`` may be ``eos.account`` of
    the targets file.
    """

    file: str | None = None
    places: Mapping[str, tuple[str | None, str]] = attrs.field(factory=FrozenMap, converter=freeze)

    def locate(self, error: Fault) -> Fault:
        """Return the error with its file, and with its key as written. An error with a file is returned unchanged."""
        if error.file:
            return error
        key, below = error.key or "", ""
        while key:
            if key in self.places:
                file, written = self.places[key]
                return attrs.evolve(error, file=file, key=written + below)
            key, dot, last = key.rpartition(".")
            below = dot + last + below
        return attrs.evolve(error, file=self.file)


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class RunSpec:
    """A run and its target. Frameworks see only the run, schedulers only the target and the job.

    ``swept`` has the dotted keys that are lists in the spec, each with this run's value. ``repeats`` is the number of
    runs with the same values. ``recipe_copy`` is that of the recipe, for the record.
    """

    run: Run[Any]
    target: Target[Any]
    swept: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    repeats: PositiveInt = 1
    recipe_copy: RecipeCopy | None = None
    source_map: SourceMap = attrs.field(factory=SourceMap, eq=False, repr=False)

    def with_run_id(self, run_id: str) -> Self:
        """Return the same run under this id, with its directory on the target."""
        return with_changes(self, run=with_changes(self.run, id=run_id, paths=self.target.paths(run_id)))


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Workload:
    """The runs of one spec, in the order of its sweep.

    ``file`` is None for a spec that was not read from a file. ``notes`` name the parts of the spec that are ignored.
    The runs have no ids: ids are drawn when a workload is started, so it can be started any number of times.
    """

    file: str | None
    runs: tuple[RunSpec, ...]
    notes: tuple[str, ...] = ()

    @property
    def first_repeats(self) -> Self:
        """The workload without the repeats of its runs, which need no check of their own."""
        return attrs.evolve(self, runs=tuple(spec for spec in self.runs if spec.run.repeat == 1))
