"""The result of a comparison of recorded runs."""

from typing import Any

import attrs

from llmb.analysis.significance_of_change import Call
from llmb.judging.differences import Difference
from llmb.values.texts.error_text import counted
from llmb.values.texts.html_table import html_table

NOT_IN_JSON = ("apart", "not_compared", "not_judged", "same_logs")
"""Fields of `RunComparison` that only explain it to a reader."""

SIZES = ("layers", "seq_len", "global_batch_size")
"""Fields of `PointChange` that are shown only if they distinguish points."""


@attrs.frozen(kw_only=True)
class ComparedSide:
    """The runs of one side at one point, by id, and their means without the runs that are left out."""

    runs: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    step_time_s: float
    tokens_per_s: float | None
    mfu: float | None


@attrs.frozen(kw_only=True)
class RankTest:
    """A two-sided test on the values of the runs."""

    name: str
    p: float


@attrs.frozen(kw_only=True)
class PointChange:
    """The change at one point as a fraction of A's step time. ``call`` is "none" if the margin is not exceeded."""

    recipe: str | None
    gpu_type: str | None
    dtype: str | None
    variant: str | None
    gpus: int | None
    layers: int | None
    seq_len: int
    global_batch_size: int
    a: ComparedSide
    b: ComparedSide
    change: float
    margin: float
    call: Call
    test: RankTest | None


@attrs.frozen(kw_only=True)
class RunComparison:
    """The comparison of two groups of runs. The fields are the keys of ``llmb compare --json``.

    ``only_a`` and ``only_b`` are the ids of runs at points that only one side has, without a comparable step time,
    or imported from the log of another run of the side.

    These fields are not part of the JSON. If each side has one point, and the two are different, ``apart`` has the
    parts that differ, with the values of A and B. ``not_compared`` has the runs of ``only_a`` and ``only_b`` by side
    and reason. ``not_judged`` has the runs without a verdict on their step time by reason, in a comparison with the
    baseline. ``same_logs`` are pairs of a run of A and a run of B that were imported from the same log.
    """

    a: tuple[str, ...]
    b: tuple[str, ...] | str
    points: tuple[PointChange, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    geometric_mean_change: float | None
    differences: tuple[Difference, ...]
    apart: tuple[tuple[str, Any, Any], ...] = ()
    not_compared: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    not_judged: tuple[tuple[str, tuple[str, ...]], ...] = ()
    same_logs: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``llmb compare --json`` prints."""
        return attrs.asdict(self, filter=lambda field, _value: field.name not in NOT_IN_JSON)

    def sizes_apart(self) -> list[str]:
        """Return for each point the sizes that distinguish it from others with the same GPUs, or "".

        An example is ``, layers=40``.
        """
        alike: dict[tuple[object, ...], list[PointChange]] = {}
        for point in self.points:
            alike.setdefault(_without_sizes(point), []).append(point)
        apart = {
            config: [name for name in SIZES if len({getattr(each, name) for each in points}) > 1]
            for config, points in alike.items()
        }
        sizes = ({name: getattr(point, name) for name in apart[_without_sizes(point)]} for point in self.points)
        return ["".join(f", {name}={size}" for name, size in each.items() if size is not None) for each in sizes]

    def _repr_html_(self) -> str:
        """Return the points and their changes as a table, for a notebook."""
        columns = ("recipe", "GPU type", "dtype", "GPUs", "A (s)", "B (s)", "change", "")
        rows = [
            (
                *(each.recipe, each.gpu_type, each.dtype, f"{each.gpus}{sizes}"),
                *(each.a.step_time_s, each.b.step_time_s),
                f"{100 * each.change:+.1f} % ± {100 * each.margin:.1f} %",
                each.call if each.call != "none" else "within noise",
            )
            for each, sizes in zip(self.points, self.sizes_apart(), strict=True)
        ]
        other = "the baseline" if self.b == "baseline" else f"{len(self.b)}"
        return html_table(f"{counted(len(self.a), 'run')} compared with {other}", columns, rows)


def _without_sizes(point: PointChange) -> tuple[object, ...]:
    return point.recipe, point.gpu_type, point.dtype, point.variant, point.gpus
