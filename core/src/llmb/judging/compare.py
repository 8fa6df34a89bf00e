"""Comparison of recorded runs: the change of the step time at each point, and what differs between the runs."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any

import attrs

from llmb.analysis.change import Call, compare_repeats
from llmb.analysis.measuring_window import mean_of_known
from llmb.analysis.metrics import Metrics
from llmb.analysis.verdict import Repeat, judge_step_times
from llmb.judging.differences import Difference, find_differences
from llmb.judging.published_spec import published_spec
from llmb.paths import runs_folder
from llmb.plugins.registry import PluginRegistry
from llmb.records.record import RunRecord
from llmb.records.result import RunResult
from llmb.values.texts.error_text import counted
from llmb.values.texts.html_table import html_table

AT_POINT = ("recipe", "gpu_type", "dtype", "variant", "gpus")
"""The names of a configuration."""

SIZES = ("model.layers", "seq_len", "global_batch_size")
"""The sizes of a configuration, by their keys in a spec."""

NOT_IN_JSON = ("apart", "not_compared", "not_judged", "same_logs")
"""Fields of `RunComparison` that only explain it to a reader."""

Point = tuple[Any, ...]
"""Values of AT_POINT, then of SIZES."""


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

    def _repr_html_(self) -> str:
        """Return the points and their changes as a table, for a notebook."""
        columns = ("recipe", "GPU type", "dtype", "GPUs", "A (s)", "B (s)", "change", "")
        rows = [
            (
                *(each.recipe, each.gpu_type, each.dtype, each.gpus, each.a.step_time_s, each.b.step_time_s),
                f"{100 * each.change:+.1f} % ± {100 * each.margin:.1f} %",
                each.call if each.call != "none" else "within noise",
            )
            for each in self.points
        ]
        other = "the baseline" if self.b == "baseline" else f"{len(self.b)}"
        return html_table(f"{counted(len(self.a), 'run')} compared with {other}", columns, rows)


@attrs.frozen(kw_only=True)
class _Run:
    """A run that completed and whose window was measured, and no log with a step time that was not judged."""

    result: RunResult
    spec: dict[str, Any]
    metrics: Metrics
    repeat: Repeat

    @property
    def point(self) -> Point:
        """The configuration in which runs must agree to be compared."""
        workload, layers = self.spec.get("workload", {}), self.spec.get("model", {}).get("layers")
        sizes = (layers, self.metrics.seq_len, self.metrics.global_batch_size)
        return (self.result.recipe, *(workload.get(name) for name in AT_POINT[1:]), *sizes)


def compare_runs(a: Sequence[RunResult], b: Sequence[RunResult]) -> RunComparison:
    """Compare two groups of recorded runs at the points that both have. Raise RecordError for a damaged record."""
    side_a, side_b = _read_side(a), _read_side(b)
    runs_of_a, runs_of_b = side_a.points, side_b.points
    pairs = {point: (runs, runs_of_b[point]) for point, runs in runs_of_a.items() if point in runs_of_b}
    points = [_compare_point(point, *pair) for point, pair in pairs.items()]
    specs = [([r.spec for r in one], [r.spec for r in two]) for one, two in pairs.values()]
    compared = _comparison(a, b, points, specs)
    return attrs.evolve(
        compared,
        apart=_find_distance(list(runs_of_a), list(runs_of_b)),
        not_compared=(*side_a.explain("A", compared.only_a), *side_b.explain("B", compared.only_b)),
        same_logs=tuple(
            (run.result.run_id, other.result.run_id)
            for one, two in pairs.values()
            for run, other in itertools.product(one, two)
            if run.result.run_id != other.result.run_id and _same_log(run, other)
        ),
    )


def _find_distance(a: Sequence[Point], b: Sequence[Point]) -> tuple[tuple[str, Any, Any], ...]:
    """Return the parts in which the only point of A differs from the only point of B."""
    if len(a) != 1 or len(b) != 1:
        return ()
    parts = zip((*AT_POINT, *SIZES), a[0], b[0], strict=True)
    return tuple((name, before, after) for name, before, after in parts if before != after)


def compare_with_baseline(runs: Sequence[RunResult]) -> RunComparison:
    """Compare recorded runs with the published configuration of their recipe. Raise RecordError or PluginError."""
    side = _read_side([run for run in runs if run.metrics and run.metrics.baseline])
    groups = side.points
    points = [_compare_with_published(point, group) for point, group in groups.items()]
    registry = PluginRegistry()
    specs = [
        ([r.spec for r in group], [published_spec(group[0].result.run_id, group[0].spec, registry)])
        for group in groups.values()
    ]
    compared = _comparison(runs, (), points, specs)
    unpublished = [run for run in runs if run.state == "completed" and run.metrics and not run.metrics.baseline]
    side.reasons.update({run.run_id: "without a published step time" for run in unpublished})
    reasons: dict[str, list[str]] = {}
    for run in itertools.chain(*groups.values()):
        if run.result.interval is None and run.result.reason:
            reasons.setdefault(run.result.reason, []).append(run.result.run_id)
    return attrs.evolve(
        compared,
        b="baseline",
        not_compared=tuple(side.explain("A", compared.only_a)),
        not_judged=tuple((reason, tuple(ids)) for reason, ids in reasons.items()),
    )


def _comparison(
    a: Sequence[RunResult],
    b: Sequence[RunResult],
    points: Sequence[PointChange],
    specs: Sequence[tuple[list[dict[str, Any]], list[dict[str, Any]]]],
) -> RunComparison:
    """Return the comparison of two groups of runs. ``specs`` are those of both sides at each point."""
    compared = {run_id for point in points for side in (point.a, point.b) for run_id in side.runs}
    return RunComparison(
        a=tuple(each.run_id for each in a),
        b=tuple(each.run_id for each in b),
        points=tuple(points),
        only_a=tuple(each.run_id for each in a if each.run_id not in compared),
        only_b=tuple(each.run_id for each in b if each.run_id not in compared),
        geometric_mean_change=geometric_mean(1 + point.change for point in points) - 1 if points else None,
        differences=tuple(find_differences(specs)),
    )


@attrs.frozen(kw_only=True)
class _MeasuredSide:
    """The measured runs of one side by their points, each imported log once, and reasons by the ids of other runs."""

    points: dict[Point, list[_Run]]
    reasons: dict[str, str]

    def explain(self, name: str, run_ids: Iterable[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield the side with each reason why runs were not compared, and their ids."""
        measured = {run.result.run_id for runs in self.points.values() for run in runs}
        reasons: dict[str, list[str]] = {}
        for run_id in run_ids:
            unmeasured = self.reasons.get(run_id, "without a comparable step time")
            reasons.setdefault(f"only in {name}" if run_id in measured else unmeasured, []).append(run_id)
        yield from ((name, reason, tuple(ids)) for reason, ids in reasons.items())


def _read_side(results: Iterable[RunResult]) -> _MeasuredSide:
    """Return the measured runs of one side. Raise RecordError for a damaged record."""
    side = _MeasuredSide(points={}, reasons={})
    for result in results:
        spec, window, metrics = RunRecord(runs_folder() / result.run_id).spec(), result.window, result.metrics
        doubtful = result.imported and result.verdict == "undecided" and result.interval is None
        if result.state == "completed" and window and metrics and not doubtful:
            repeat = Repeat(window=window, steady_state=result.steady_state, name=result.run_id)
            run = _Run(result=result, spec=spec, metrics=metrics, repeat=repeat)
            group = side.points.setdefault(run.point, [])
            if any(_same_log(run, other) for other in group):
                side.reasons[result.run_id] = "a copy of another run"
            else:
                group.append(run)
    return side


def _same_log(run: _Run, other: _Run) -> bool:
    """Check whether two imported runs have the same log, which would narrow the margin for nothing."""
    imported = run.result.imported and other.result.imported and run.repeat.steady_state is not None
    return imported and attrs.evolve(run.repeat, name="") == attrs.evolve(other.repeat, name="")


def _compare_point(point: Point, a: Sequence[_Run], b: Sequence[_Run]) -> PointChange:
    change = compare_repeats([run.repeat for run in a], [run.repeat for run in b])
    same_flops = len({run.metrics.flops_per_sequence for run in (*a, *b)}) == 1
    return PointChange(
        **_describe_point(point),
        a=_describe_side(a, change.a_s, with_mfu=same_flops),
        b=_describe_side(b, change.b_s, with_mfu=same_flops),
        change=change.change,
        margin=change.margin,
        call=change.call,
        test=None if change.p is None else RankTest(name="Mann-Whitney U", p=change.p),
    )


def _describe_point(point: Point) -> dict[str, Any]:
    """Return the parts of a point by the names of their fields."""
    names = (name.removeprefix("model.") for name in (*AT_POINT, *SIZES))
    return dict(zip(names, point, strict=True))


def _describe_side(runs: Sequence[_Run], step_time_s: float, *, with_mfu: bool = True) -> ComparedSide:
    """Return one side of a comparison, without MFU if the sides count the FLOPs of the model differently."""
    kept = [run for run in runs if not run.repeat.is_off] or runs
    return ComparedSide(
        runs=tuple(run.result.run_id for run in runs),
        left_out=tuple(run.result.run_id for run in runs if run not in kept),
        step_time_s=step_time_s,
        tokens_per_s=mean_of_known(run.metrics.tokens_per_s for run in kept),
        mfu=mean_of_known(run.metrics.mfu for run in kept) if with_mfu else None,
    )


def _compare_with_published(point: Point, runs: Sequence[_Run]) -> PointChange:
    """Compare runs with their published step time: the direction is that of a verdict without tolerance."""
    baseline = next(run.metrics.baseline for run in runs if run.metrics.baseline)
    judgement = judge_step_times([run.repeat for run in runs], baseline.step_time_s, 0.0)
    ratio, (low, _high) = judgement.ratio or 1.0, judgement.interval or (1.0, 1.0)
    return PointChange(
        **_describe_point(point),
        a=_describe_side(runs, ratio * baseline.step_time_s),
        b=ComparedSide(runs=(), step_time_s=baseline.step_time_s, tokens_per_s=baseline.tokens_per_s, mfu=baseline.mfu),
        change=ratio - 1,
        margin=ratio - low,
        call="slower" if judgement.verdict == "fail" else "faster" if judgement.verdict == "pass" else "none",
        test=None,
    )
