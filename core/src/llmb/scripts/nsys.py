"""Profiling with nsys: the command that wraps a training if the spec sets ``[profile] tool = "nsys"``."""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from llmb.files import resource_text
from llmb.values.frozen import FrozenMap
from llmb.values.run import Run
from llmb.values.types.check_types import decode_settings, typed_fields
from llmb.values.types.numbers import PositiveInt
from llmb.values.types.words_and_addresses import NonEmptyStr


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Nsys:
    """The nsys command line that the publisher of a recipe uses. A recipe states it in a table with these keys.

    ``command`` is nsys with its options. ``with_cpu`` and ``without_cpu`` are the options to add if the CPU is sampled
    or not. ``gpu_metrics`` is the option with which one rank of each node records the metrics of all its GPUs.
    ``ranks`` is the number of first ranks to profile if the spec names none; None means all.
    """

    command: tuple[NonEmptyStr, ...]
    with_cpu: tuple[NonEmptyStr, ...] = ()
    without_cpu: tuple[NonEmptyStr, ...] = ()
    gpu_metrics: str = ""
    ranks: PositiveInt | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Read the table ``nsys`` of a recipe's settings. Raise RecipeError if the table is invalid."""
        return decode_settings(settings.get("nsys", {}), cls, "framework.nsys")

    def captured(self, run: Run[Any]) -> tuple[int, ...]:
        """Return the ranks to profile, in ascending order."""
        if run.profile and run.profile.ranks is not None:
            return tuple(sorted(set(run.profile.ranks)))
        return tuple(range(run.gpus if self.ranks is None else min(self.ranks, run.gpus)))

    def words(self, run: Run[Any], report: str) -> tuple[str, ...]:
        """Return the words to put before the training's command. The job must also place `files`.

        ``report`` is the path of the reports, without the node, local rank and suffix that each report adds.
        """
        asked = run.profile
        cpu = self.with_cpu if asked and asked.cpu else self.without_cpu
        metrics = self.gpu_metrics if asked and asked.gpu_metrics else ""
        ranks = ",".join(map(str, self.captured(run)))
        return ("bash", f"{run.paths.run}/nsys.sh", report, ranks, metrics, *self.command, *cpu, "--")

    def files(self, run: Run[Any]) -> Mapping[str, str]:
        """Return the script that `words` calls, to be merged into ``Job.files``."""
        return FrozenMap({f"{run.paths.run}/nsys.sh": resource_text(__package__, "nsys.sh")})

    def reports(self, run: Run[Any], report: str) -> tuple[str, ...]:
        """Return the paths of all reports, to be used as outputs of the phase, so that a missing report fails it."""
        places = (divmod(rank, run.gpus_per_node) for rank in self.captured(run))
        return tuple(f"{report}_{node}_{local}.nsys-rep" for node, local in places)
