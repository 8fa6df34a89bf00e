"""The capture that a user asks for by ``[profile] tool = "nsys"``, around any training's command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from llmb.scripts.resources import resource_text
from llmb.values.frozen import FrozenMap, frozen_fields
from llmb.values.run import Run
from llmb.values.tables import Reader, checked, string, whole, words

_CHECKS: Mapping[str, Reader] = {
    "command": words,
    "with_cpu": words,
    "without_cpu": words,
    "gpu_metrics": string,
    "ranks": whole,
}


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Nsys:
    """How the publisher of a recipe starts nsys; a table of the recipe may have these keys.

    ``command`` is nsys with its options; ``with_cpu`` and ``without_cpu`` are further ones, where the CPU is sampled
    and where it is not; ``gpu_metrics`` is the option by which one rank of a node records all its GPUs. ``ranks``
    counts the first ranks that are captured where a spec names none; null: all.
    """

    command: tuple[str, ...]
    with_cpu: tuple[str, ...] = ()
    without_cpu: tuple[str, ...] = ()
    gpu_metrics: str = ""
    ranks: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Nsys:
        """The one in a recipe's settings, a table ``nsys``. Raises RecipeError for what is wrong in it."""
        return cls(**checked(settings.get("nsys", {}), "framework.nsys", _CHECKS, ("command",)))

    def captured(self, run: Run[Any]) -> tuple[int, ...]:
        """The ranks that are captured, in order."""
        if run.profile and run.profile.ranks is not None:
            return tuple(sorted(set(run.profile.ranks)))
        return tuple(range(run.gpus if self.ranks is None else min(self.ranks, run.gpus)))

    def words(self, run: Run[Any], report: str) -> tuple[str, ...]:
        """What stands before the training's command; the job must have `files` beside it.

        ``report`` is the path of the reports, without the node, local rank and ending that each has of its own.
        """
        asked = run.profile
        cpu = self.with_cpu if asked and asked.cpu else self.without_cpu
        metrics = self.gpu_metrics if asked and asked.gpu_metrics else ""
        ranks = ",".join(map(str, self.captured(run)))
        return ("bash", f"{run.paths.run}/nsys.sh", report, ranks, metrics, *self.command, *cpu, "--")

    def files(self, run: Run[Any]) -> Mapping[str, str]:
        """The script among the job's files that `words` calls."""
        return FrozenMap({f"{run.paths.run}/nsys.sh": resource_text(__package__, "nsys.sh")})

    def reports(self, run: Run[Any], report: str) -> tuple[str, ...]:
        """What the captured ranks must leave: outputs of the phase, since a capture without them is none."""
        places = (divmod(rank, run.gpus_per_node) for rank in self.captured(run))
        return tuple(f"{report}_{node}_{local}.nsys-rep" for node, local in places)
