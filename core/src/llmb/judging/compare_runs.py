"""Comparison of recorded runs: the change of the step time at each point, and what differs between the runs."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any

import attrs

from llmb.analysis.measuring_window import mean_of_known
from llmb.analysis.metrics import Metrics
from llmb.analysis.significance_of_change import compare_repeats
from llmb.analysis.verdict import Repeat, judge_step_times
from llmb.judging.comparison_values import ComparedSide, PointChange, RankTest, RunComparison
from llmb.judging.differences import find_differences
from llmb.judging.published_spec import published_spec
from llmb.paths import runs_folder
from llmb.plugins.registry import PluginRegistry
from llmb.records.record import RunRecord
from llmb.records.result import RunResult

AT_POINT = ("recipe", "gpu_type", "dtype", "variant", "gpus")
"""The parts of a configuration by the names of their fields, without its sizes."""

SIZES = ("model.layers", "seq_len", "global_batch_size")
"""The sizes of a configuration, by their keys in a spec."""

ComparisonKey = tuple[Any, ...]
"""Values of AT_POINT, then of SIZES."""


@attrs.frozen(kw_only=True)
class _Run:
    """A run that completed and whose window was measured, and no log with a step time that was not judged."""

    result: RunResult
    spec: dict[str, Any]
    metrics: Metrics
    repeat: Repeat

    @property
    def point(self) -> ComparisonKey:
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


def _find_distance(a: Sequence[ComparisonKey], b: Sequence[ComparisonKey]) -> tuple[tuple[str, Any, Any], ...]:
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
    left_out = {run_id for point in points for run_id in point.a.left_out}
    open_runs = [run.result for run in itertools.chain(*groups.values()) if run.result.interval is None]
    return attrs.evolve(
        compared,
        b="baseline",
        not_compared=tuple(side.explain("A", compared.only_a)),
        not_judged=_by_reason((run.run_id, run.reason) for run in open_runs if run.run_id not in left_out),
    )


def _by_reason(reasons: Iterable[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return each reason with the ids of its runs. A run without a reason is left out."""
    found: dict[str, list[str]] = {}
    for run_id, reason in reasons:
        if reason:
            found.setdefault(reason, []).append(run_id)
    return tuple((reason, tuple(run_ids)) for reason, run_ids in found.items())


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

    points: dict[ComparisonKey, list[_Run]]
    reasons: dict[str, str]

    def explain(self, name: str, run_ids: Iterable[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield the side with each reason why runs were not compared, and their ids."""
        measured = {run.result.run_id for runs in self.points.values() for run in runs}
        unmeasured = "without a comparable step time"
        reasons = (
            (each, f"only in {name}" if each in measured else self.reasons.get(each, unmeasured)) for each in run_ids
        )
        yield from ((name, reason, ids) for reason, ids in _by_reason(reasons))


def _read_side(results: Iterable[RunResult]) -> _MeasuredSide:
    """Return the measured runs of one side. Raise RecordError for a damaged record."""
    side = _MeasuredSide(points={}, reasons={})
    for result in results:
        spec, window, metrics = RunRecord(runs_folder() / result.run_id).spec(), result.window, result.metrics
        is_unjudged = result.imported and result.verdict == "undecided" and result.interval is None
        if result.state == "completed" and window and metrics and not is_unjudged:
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


def _compare_point(point: ComparisonKey, a: Sequence[_Run], b: Sequence[_Run]) -> PointChange:
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


def _describe_point(point: ComparisonKey) -> dict[str, Any]:
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


def _compare_with_published(point: ComparisonKey, runs: Sequence[_Run]) -> PointChange:
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
