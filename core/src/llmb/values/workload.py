"""A workload: everything that one spec asks for, ready to be planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap, frozen_fields
from llmb.values.run import Run, Target


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class SourceMap:
    """Where the keys of a run were written, so that a fault names the author's own words.

    ``places`` is for keys that are not in ``file`` as they stand: for ``workload.gpus`` of the second run it may say
    ``workload.gpus[1]``, for ``target.account`` the targets file and ``eos.account``. Each is a file and a key.
    """

    file: str | None = None
    places: Mapping[str, tuple[str | None, str]] = attrs.field(factory=FrozenMap)

    def locate(self, fault: Fault) -> Fault:
        """The fault with its file, and its key as it was written; one that has a file already is left as it is."""
        if fault.file:
            return fault
        key, below = fault.key or "", ""
        while key:
            if key in self.places:
                file, written = self.places[key]
                return attrs.evolve(fault, file=file, key=written + below)
            key, dot, last = key.rpartition(".")
            below = dot + last + below
        return attrs.evolve(fault, file=self.file)


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class RunSpec:
    """A run and the target that it goes to. Frameworks see only the run, schedulers only the target and the job.

    ``swept`` are the dotted keys that its spec has as lists, each with this run's value of them; ``repeats`` is how
    many runs of these values there are, of which it is one.
    """

    run: Run[Any]
    target: Target[Any]
    swept: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    repeats: int = 1
    source_map: SourceMap = attrs.field(factory=SourceMap, eq=False, repr=False)

    def with_run_id(self, run_id: str) -> RunSpec:
        """Return the same run under this id, with its directory on the target."""
        return attrs.evolve(self, run=attrs.evolve(self.run, id=run_id, paths=self.target.paths(run_id)))


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Workload:
    """The runs of one spec, in the order of its sweep.

    ``file`` is None for a spec that was not read from a file. ``notes`` name the parts of the spec that are ignored.
    The runs have no ids: ids are drawn when a workload is started, so it can be started any number of times.
    """

    file: str | None
    runs: tuple[RunSpec, ...]
    notes: tuple[str, ...] = ()
