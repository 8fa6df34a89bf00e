"""Repeats of recorded runs, judged together."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from llmb.analysis.verdict import Candidate, Judgement, Repeat, judge_set
from llmb.records.index.filters_and_sort_keys import has_repeats_of
from llmb.records.index.list_runs import select_records
from llmb.records.result import RunResult
from llmb.values.run_states import Verdict
from llmb.values.types.check_arguments import check_arguments


@attrs.frozen(kw_only=True)
class RepeatSet:
    """The verdict on the repeats of one run. The fields are the keys of ``sets`` in ``llmb run --json``.

    ``runs`` and ``left_out`` are run ids. Of ``repeats`` repeats, those in ``left_out`` do not count.
    """

    runs: tuple[str, ...]
    repeats: int
    left_out: tuple[str, ...]
    step_time_ratio: float | None
    interval: tuple[float, float] | None
    verdict: Verdict | None
    reason: str
    more_repeats: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``llmb run --json`` prints."""
        return attrs.asdict(self)


@check_arguments
def judge_sets(results: Iterable[RunResult]) -> list[RepeatSet]:
    """Judge runs together with their repeats among ``results``, in the order of the first repeats."""
    sets: dict[str, list[RunResult]] = {}
    for result in results:
        sets.setdefault(result.first_repeat or result.run_id, []).append(result)
    return [_judge(sorted(runs, key=lambda run: run.repeat)) for runs in sets.values()]


@check_arguments
def find_repeats(results: Sequence[RunResult]) -> list[RunResult]:
    """Return runs together with their recorded repeats. Raise RecordError if the records are unreadable."""
    known = {result.run_id for result in results}
    counts = Counter(result.first_repeat for result in results)
    wanted = {each.first_repeat for each in results if each.first_repeat and counts[each.first_repeat] < each.repeats}
    if not wanted:
        return list(results)
    repeats = select_records([has_repeats_of(sorted(wanted))]).results()
    return [*results, *(each for each in repeats if each.run_id not in known)]


def _judge(runs: Sequence[RunResult]) -> RepeatSet:
    judgement = _judgement(runs)
    return RepeatSet(
        runs=tuple(run.run_id for run in runs),
        repeats=len(runs),
        left_out=tuple(runs[index].run_id for index in judgement.left_out),
        step_time_ratio=judgement.ratio,
        interval=judgement.interval,
        verdict=judgement.verdict,
        reason=judgement.reason,
        more_repeats=judgement.more_repeats,
    )


def _judgement(runs: Sequence[RunResult]) -> Judgement:
    waiting = [run for run in runs if not run.ended]
    if waiting:
        what = f"{len(waiting)} of {len(runs)} repeats" if len(runs) > 1 else "the run"
        return Judgement(verdict=None, reason=f"{what} {'has' if len(waiting) == 1 else 'have'} not ended")
    published = [run.metrics.baseline.step_time_s for run in runs if run.metrics and run.metrics.baseline]
    tolerance = next((run.tolerance for run in runs if run.tolerance is not None), None)
    return judge_set(
        [_candidate(run, len(runs)) for run in runs],
        statistics.fmean(published) if published and tolerance is not None else None,
        tolerance or 0.0,
    )


def _candidate(run: RunResult, repeats: int) -> Candidate:
    """Return a run as one of its repeats. A run whose step time was not judged keeps its own verdict."""
    name = f"repeat {run.repeat}" if repeats > 1 else "the run"
    if run.interval is None or run.window is None:
        return Candidate(name=name, objection=Judgement(verdict=run.verdict, reason=run.reason))
    return Candidate(name=name, repeat=Repeat(window=run.window, steady_state=run.steady_state, name=name))
