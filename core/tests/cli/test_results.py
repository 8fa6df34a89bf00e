"""Results as users read them, and the exit code of several runs."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import attrs
import pytest
from rich.console import Console

from llmb.analysis.steady_state import find_steady_state
from llmb.cli import output
from llmb.cli.exit_codes import combined_exit_code
from llmb.cli.views.results import print_results
from llmb.cli.views.run_details import describe_steady_state
from llmb.cli.views.run_list import print_run_list
from llmb.judging.judge_repeats import judge_sets
from llmb.records.result import RunResult
from llmb.values.errors import LlmbError, SpecError, TargetError
from llmb.values.steps import Step

METRICS = {
    "step_time_s": 7.908, "tokens_per_s": 66298.43, "tokens_per_s_per_gpu": 1035.9,
    "model_tflops_per_gpu": 460.48,
    "mfu": 0.4656, "mfu_computed": 0.4656, "mfu_logged": None, "days_per_1t_tokens": 174.57,
    "flops_per_sequence": 1.82e15,
    "peak_flops": 989e12, "global_batch_size": 128, "seq_len": 4096, "baseline": None,
}  # fmt: skip

NOTHING_MEASURED = {"flops_per_sequence": 1.82e15, "peak_flops": 989e12}


def result(**changes: Any) -> RunResult:
    whole = {
        "run_id": "k3x9f-llama2-70b-h100-bf16-64", "state": "completed", "recipe": "toy/llama2-70b", "gpu_type": "h100",
        "dtype": "bf16", "gpus": 64, "job_id": "7", "directory": "/home/me/.local/share/llmb/runs/k3x9f",
        "metrics": METRICS, "verdict": None, "reason": "", "failure": None, "refused": False,
        "created": "2026-11-21T04:29:50+00:00",
    }  # fmt: skip
    return RunResult.from_dict(whole | changes)


def test_a_result_shows_the_metrics_by_which_trainings_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result()])
    shown = " ".join(capsys.readouterr().out.split())
    for metric in ("step time 7.908 s", "tokens/s 66,298", "TFLOP/s per GPU 460.5", "MFU 46.56 % of 989 TFLOP/s",
                   "days to 1T tokens 174.6", "record /home/me/.local/share/llmb/runs/k3x9f"):  # fmt: skip
        assert metric in shown


@pytest.mark.parametrize(
    ("wall_s", "suspended_s", "attempts", "shown"),
    [(2.0, 0.0, 1, False), (9.9, 0.0, 1, False), (10.0, 0.0, 1, True), (2.0, 0.0, 2, True), (9.0, 1.0, 1, True)],
    ids=["short", "almost", "long", "two attempts", "suspended"],
)
def test_a_job_that_is_short_for_times_in_full_seconds_shows_no_goodput(
    wall_s: float, suspended_s: float, attempts: int, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = {"requeues_s": 0.0, "spikes_s": 0.0, "checkpoints_s": 0.0, "suspended_s": suspended_s}
    lost["other_s"] = wall_s / 2 - suspended_s
    parts = {"productive_s": wall_s / 2, **lost}
    tries = [{"attempt": number, "start": 0.0, "end": wall_s} for number in range(attempts)]
    print_results([result(wall_time={"wall_s": wall_s, **parts}, attempts=tries)])
    assert ("goodput 50.0 %" in " ".join(capsys.readouterr().out.split())) == shown


def test_runs_that_fail_together_before_their_jobs_start_show_the_cause_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failed(run_id: str, **changes: Any) -> RunResult:
        failure = {"cause": "no route to a server", "remedy": f"llmb run {run_id}/run.toml --set x=y"}
        return result(run_id=run_id, state="failed", metrics=None, failure=failure, **changes)

    repeats = [failed(run_id, reason="no route to a server", first_repeat="a", repeats=2) for run_id in "ab"]
    print_results(repeats, judge_sets(repeats))
    *_, last = capsys.readouterr().out.splitlines()
    assert " ".join(last.split()) == "no verdict see the cause of a"
    started = [{"attempt": 0, "start": 0.0, "end": 1.0}]
    print_results([failed("a"), failed("b"), failed("c", attempts=started), failed("d", attempts=started)])
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("cause no route to a server remedy llmb run") == 3, "that of a, and of the two jobs"
    assert "b failed cause the same as for a record" in shown


@pytest.mark.parametrize(("computed", "noted"), [(0.3673, True), (0.33, False), (0.334, False), (None, False)])
def test_a_logged_and_a_computed_mfu_that_differ_by_more_than_3_percent_need_a_note(
    computed: float | None, noted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    by_step_time = {"mfu_computed": computed, "model_tflops_per_gpu": computed and computed * 989}
    print_results([result(metrics=METRICS | {"mfu": 0.334, "mfu_logged": 0.334, **by_step_time})])
    shown = " ".join(capsys.readouterr().out.split())
    assert ("MFU is 33.40 % by logged TFLOP/s but 36.73 % by step time" in shown) == noted


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"mfu_computed": 0.3675, "peak_flops": 14.7e15}, "by step time it is 36.75 % of 14,700 TFLOP/s"),
        ({"mfu_computed": None, "peak_flops": None}, "no MFU: the peak FLOP/s of this GPU type and dtype are unknown"),
        (
            {"mfu_computed": None, "flops_per_sequence": None},
            "no MFU: the recipe does not state the FLOPs of the model",
        ),
        ({"mfu": 0.4656}, None),
        ({"step_time_s": None, "mfu_computed": None}, None),
    ],
)
def test_a_missing_mfu_is_explained(
    changes: dict[str, Any], note: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    print_results([result(metrics=METRICS | {"mfu": None} | changes)])
    shown = " ".join(capsys.readouterr().out.split())
    assert note in shown if note else "note" not in shown


@pytest.mark.parametrize("mfu_from", ["mfu_logged", "mfu_computed"])
@pytest.mark.parametrize("computed", [0.3673, 0.33, 0.334])
def test_logged_and_computed_tflops_that_differ_are_both_shown_and_the_mfu_names_its_basis(
    computed: float, mfu_from: str, capsys: pytest.CaptureFixture[str]
) -> None:
    two = {"mfu_computed": computed, "mfu_logged": 0.334, "model_tflops_per_gpu": computed * 989}
    print_results([result(metrics=METRICS | {**two, "mfu": two[mfu_from]})])
    shown = " ".join(capsys.readouterr().out.split())
    differ = computed != 0.334
    assert (f"TFLOP/s per GPU 330.3 logged, {computed * 989:.1f} by step time" in shown) == differ
    of = "logged" if mfu_from == "mfu_logged" else "by step time"
    assert (f"MFU {100 * two[mfu_from]:.2f} % of 989 TFLOP/s, {of}" in shown) == differ


@pytest.mark.parametrize(("computed", "shown"), [(0.3673, "MFU 33.40 % (logged)"), (0.334, "MFU 33.40 % days")])
def test_the_mfu_of_a_judged_run_is_marked_if_logged_tflops_differ(
    computed: float, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    window = {"first": 35, "last": 44, "count": 10, "step_time_s": 7.908, "step_time_std_s": 0.01}
    two = {"mfu": 0.334, "mfu_computed": computed, "mfu_logged": 0.334, "model_tflops_per_gpu": computed * 989}
    print_results([result(metrics=METRICS | two, window=window)])
    assert shown in " ".join(capsys.readouterr().out.split())


def test_a_run_of_a_sweep_shows_its_values_and_its_repeat(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = {"workload.gpus": 64, "parallelism.tp": 2, "measure.window": [35, 44], "env.A": "on"}
    print_results([result(sweep=sweep, repeat=2, repeats=3)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "sweep parallelism.tp = 2, measure.window = [35, 44], env.A = on repeat 2 of 3 step time" in shown


def test_a_set_of_many_repeats_names_the_first_runs(capsys: pytest.CaptureFixture[str]) -> None:
    repeats = [result(run_id=f"id{n}", repeat=n, repeats=400, first_repeat="id1") for n in range(1, 401)]
    print_results([], judge_sets(repeats))
    assert capsys.readouterr().out.splitlines()[0] == "400 repeats  id1, id2, id3, id4 and 396 more"


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        (["queued"], "the run has not ended"),
        (["completed", "queued"], "1 of 2 repeats has not ended"),
        (["completed", "running", "queued"], "2 of 3 repeats have not ended"),
    ],
)
def test_a_set_with_unfinished_runs_has_no_verdict(states: list[str], reason: str) -> None:
    repeats = [result(run_id=state, state=state, first_repeat=states[0], repeats=len(states)) for state in states]
    [unfinished] = judge_sets(repeats)
    assert (unfinished.verdict, unfinished.reason) == (None, reason)


def test_the_names_of_repeats_are_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "console", lambda **_: Console(file=sys.stdout, width=80, force_terminal=True))
    first, other = "3n4fr-llama2-70b-h100-bf16-2048", "k7x2p-llama2-70b-h100-bf16-2048"
    repeats = [result(run_id=each, repeat=n, repeats=2, first_repeat=first) for n, each in enumerate((first, other), 1)]
    print_results([], judge_sets([*repeats, attrs.evolve(repeats[1], run_id="z" * 20, repeat=3)]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f"{first}, {other},")
    assert lines[1].split() == ["z" * 20]


def test_the_list_shows_the_values_by_which_runs_of_one_name_differ(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = "v" * 30
    matrix = [
        result(
            run_id=f"k3x{tp}{size}-tiny-64", sweep={"a.tp": tp, "b.size": size, "c.size": -size, "d.x": f"{long}{tp}"}
        )
        for tp in (1, 2)
        for size in (4, 8)
    ]
    repeats = [result(run_id=f"abcd{each}-other-64", sweep={"a.tp": 3}, repeat=each, repeats=2) for each in (1, 2)]
    print_run_list([*matrix, *repeats, result(run_id="zzzzz-third-64", sweep={"a.tp": 5})])
    titles, *rows = capsys.readouterr().out.splitlines()
    swept = [row[titles.index("sweep") :].partition("  ")[0] for row in rows]
    assert swept[:2] == [f"tp=1, b.size={size}, c.size=-{size}, x={'v' * 23}…" for size in (4, 8)]
    assert swept[4:] == ["repeat=1", "repeat=2", ""]


def test_the_list_does_not_repeat_values_that_are_part_of_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_run_list([result(run_id="aaaaa-x-64"), result(run_id="bbbbb-x-64", sweep={"workload.gpus": 64})])
    assert "sweep" not in capsys.readouterr().out.partition("\n")[0]


def test_the_list_has_no_sweep_column_if_names_differ_anyway(capsys: pytest.CaptureFixture[str]) -> None:
    print_run_list([result(run_id="aaaaa-x", sweep={"a.tp": 1}), result(run_id="bbbbb-y", sweep={"a.tp": 2})])
    assert capsys.readouterr().out.split()[:3] == ["run", "state", "verdict"]


@pytest.mark.parametrize(
    ("steps_done", "metrics", "shown"),
    [
        (2, METRICS, "in part 2 of 50 steps: the measuring window is incomplete step time in part 7.908 s"),
        (2, METRICS, "MFU in part 46.56 %"),
        (50, METRICS, "in part the measuring window is incomplete step time in part 7.908 s"),
        (50, NOTHING_MEASURED, "metrics none: no step of the measuring window was measured record"),
    ],
)
def test_metrics_of_an_incomplete_window_are_marked_and_left_out_of_the_list(
    steps_done: int, metrics: dict[str, Any], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    part = result(metrics=metrics, steps=50, steps_done=steps_done, window_complete=False)
    print_results([part])
    assert shown in " ".join(capsys.readouterr().out.split())
    print_run_list([part])
    assert "7.908" not in capsys.readouterr().out


@pytest.mark.parametrize(("mfu", "noted"), [(1.0, False), (2.13, True)])
def test_an_mfu_above_100_percent_needs_a_note(mfu: float, noted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result(metrics=METRICS | {"mfu": mfu, "mfu_computed": mfu})])
    assert ("MFU above 100 % is impossible" in capsys.readouterr().out) == noted
    print_run_list([result(metrics=METRICS | {"mfu": mfu, "mfu_computed": mfu})])
    assert ("note: k3x9f-llama2-70b-h100-bf16-64: MFU above 100 % is impossible" in capsys.readouterr().out) == noted


def test_a_computed_mfu_above_100_percent_needs_a_note_too(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result(metrics=METRICS | {"mfu": None, "mfu_logged": None, "mfu_computed": 2.0})])
    assert "MFU above 100 % is impossible" in capsys.readouterr().out


def test_a_result_has_one_note_on_an_mfu_above_100_percent(capsys: pytest.CaptureFixture[str]) -> None:
    note = "warning: MFU above 100 % is impossible: the machine was busy while the peak of its CPU was measured"
    print_results([result(metrics=METRICS | {"mfu": 2.0, "mfu_computed": 2.0}, notes=[note])])
    shown = " ".join(capsys.readouterr().out.split())
    assert note in shown
    assert shown.count("MFU above 100 %") == 1
    print_run_list([result(metrics=METRICS | {"mfu": 2.0, "mfu_computed": 2.0}, notes=[note])])
    assert "the machine was busy while the peak of its CPU was measured" in capsys.readouterr().out


@pytest.mark.parametrize("cause", ["a disk is full", "unknown: a disk is full"])
def test_a_failure_shows_cause_log_line_and_remedy_once_each(cause: str, capsys: pytest.CaptureFixture[str]) -> None:
    failure = {"cause": cause, "evidence": "No space left on device", "line": 12, "remedy": "free some"}
    print_results([result(state="failed", metrics=None, reason="a disk is full", failure=failure)])
    shown = capsys.readouterr().out
    assert shown.count("a disk is full") == 1
    assert "No space left on device (line 12)" in shown
    assert "free some" in shown


def test_a_single_attempt_is_shown_only_with_the_job_that_followed(capsys: pytest.CaptureFixture[str]) -> None:
    attempt = {"attempt": 0, "start": 7.0, "end": 9.0, "nodes": ["n1"], "cause": "preempted"}
    print_results([result(attempts=[attempt])])
    assert "attempt 0" not in capsys.readouterr().out
    print_results([result(attempts=[attempt | {"followed_by": "job 8 of alice (urgent) on n1"}])])
    assert "2 s on n1, preempted, followed by job 8 of alice (urgent) on n1\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("state", "verdict", "shown"),
    [
        ("failed", None, "reason rank 0: exit code 1 cause too little memory"),
        ("failed", "undecided", "verdict undecided reason rank 0: exit code 1 cause too little memory"),
        ("completed", None, "no verdict rank 0: exit code 1"),
    ],
)
def test_the_reason_of_a_failure_is_separate_from_its_verdict(
    state: str, verdict: str | None, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = None if state == "completed" else {"cause": "too little memory"}
    print_results([result(state=state, verdict=verdict, reason="rank 0: exit code 1", failure=failure)])
    assert shown in " ".join(capsys.readouterr().out.split())


def test_a_run_that_has_not_ended_shows_its_job(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result(state="queued", metrics=None, reason="")])
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.endswith("queued")
    assert [row.split() for row in rows] == [["job", "7"], ["record", "/home/me/.local/share/llmb/runs/k3x9f"]]


def test_piped_lines_are_complete_and_have_no_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    long_id = "k3x9f-" + "x" * 150
    print_run_list([result(run_id=long_id), result(state="failed", metrics=None)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert long_id in lines[1]
    assert all(line == line.rstrip() for line in lines)


def numbered(results: list[RunResult]) -> list[RunResult]:
    """Return the results with different run ids."""
    return [attrs.evolve(each, run_id=f"run{number}") for number, each in enumerate(results)]


@pytest.mark.parametrize(
    ("results", "check", "exit_code"),
    [
        ([result()], False, 0),
        ([result(verdict="fail")], False, 0),
        ([result(verdict="fail")], True, 3),
        ([result(verdict="undecided"), result(verdict="pass")], True, 0),
        ([result(verdict="fail"), result(state="timeout")], True, 1),
        ([result(), result(state="cancelled")], False, 1),
        ([result(), result(state="lost")], False, 1),
        ([result(state="failed"), result(state="failed", refused=True), result()], True, 4),
    ],
)
def test_the_exit_code_is_the_worst_of_all_runs(results: list[RunResult], check: bool, exit_code: int) -> None:
    sets = judge_sets(numbered(results)) if check else ()
    assert combined_exit_code(results, sets=sets) == exit_code


@pytest.mark.parametrize(
    ("results", "error", "exit_code"),
    [
        ([result()], SpecError("a secret is not set"), 2),
        ([result(verdict="fail")], SpecError("a secret is not set"), 2),
        ([result(state="timeout")], SpecError("a secret is not set"), 1),
        ([result(state="failed", refused=True)], SpecError("a secret is not set"), 4),
        ([result(state="timeout")], TargetError("no route to host"), 4),
    ],
)
def test_an_error_does_not_hide_a_worse_result_of_another_run(
    results: list[RunResult], error: LlmbError, exit_code: int
) -> None:
    assert combined_exit_code(results, sets=judge_sets(numbered(results)), error=error) == exit_code


def test_a_result_survives_json() -> None:
    failure = {"cause": "a disk is full", "evidence": "No space left on device", "line": 12, "remedy": "free some"}
    whole = result(state="failed", failure=failure)
    assert RunResult.from_dict(json.loads(json.dumps(whole.as_dict()))) == whole
    assert (whole.failure and whole.failure.line, whole.metrics and whole.metrics.mfu, whole.ended) == (
        12,
        0.4656,
        True,
    )


def test_a_result_of_an_older_version_lacks_newer_keys() -> None:
    old = result(metrics={"step_time_s": 7.9, "mfu": None}, failure={"cause": "a disk is full"})
    assert (old.metrics and old.metrics.as_dict()["tokens_per_s"], old.failure and old.failure.line) == (None, None)


STEADY = {
    "first": 4, "last": 50, "count": 47, "step_time_s": 15.28, "step_time_std_s": 0.01, "drift": 0.001, "spikes": [],
    "spike_share": 0.0, "spike_period": None, "autocorrelation": 0.0,
}  # fmt: skip
WINDOW = {"first": 50, "last": 50, "count": 1, "step_time_s": 15.3, "step_time_std_s": None}
BASELINE = {
    "step_time_s": 14.72, "tokens_per_s": None, "mfu": None, "days_per_1t_tokens": None, "step_time_ratio": 1.039,
    "release": "24.11", "source": "README",
}  # fmt: skip
REASON = "ratio 1.039, between 1.027 and 1.052; the limit is 1.05; about 1 more repeat would settle it"
SCREEN_80 = """\
k3x9f-llama2-70b-h100-bf16-64  completed
undecided  ratio 1.039, between 1.027 and 1.052; the limit is 1.05
           about 1 more repeat would settle it
  published     14.72 s per step (release 24.11)
  measured      15.30 s, step 50 (the window of this run)
  steady state  15.28 s, steps 4 to 50; no spikes, drift +0.1 %
  tokens/s      66,298    MFU 46.56 %    days to 1T tokens 174.6
  TFLOP/s       460.5 per GPU
  record        /home/me/.local/share/llmb/runs/k3x9f
"""


@pytest.mark.parametrize(
    ("steps", "period", "place"),
    [([27, 28, 29], None, "at steps 27, 28, 29"), ([20, 40, 60], 20, "every 20 steps from step 20")],
)
def test_spikes_are_described_by_their_steps_or_their_period(
    steps: list[int], period: int | None, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spikes = [{"step": step, "time_s": 30.0} for step in steps]
    steady = STEADY | {"spikes": spikes, "spike_period": period, "spike_share": 0.04}
    print_results([result(steady_state=steady, window=WINDOW, reason="no baseline is published for this run")])
    assert f"3 spikes {place} cost 4.0 % of the time" in " ".join(capsys.readouterr().out.split())


def on_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, color: bool) -> str:
    def console(**_options: object) -> Console:
        system = "standard" if color else None
        return Console(file=sys.stdout, width=width, force_terminal=True, color_system=system, highlight=False)

    judged = result(
        metrics=METRICS | {"baseline": BASELINE}, verdict="undecided", reason=REASON, interval=[1.027, 1.052],
        window=WINDOW, steady_state=STEADY, window_complete=True,
    )  # fmt: skip
    monkeypatch.setattr(output, "console", console)
    print_results([judged])
    return capsys.readouterr().out


def test_the_screen_of_a_judged_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    narrow = on_terminal(monkeypatch, capsys, 80, color=False)
    assert narrow == SCREEN_80
    wide = on_terminal(monkeypatch, capsys, 200, color=False).splitlines()
    assert wide[1] == f"undecided  {REASON}"
    assert wide[2:] == narrow.splitlines()[3:]
    coloured = on_terminal(monkeypatch, capsys, 80, color=True)
    assert "\x1b[33mundecided  \x1b[0mratio 1.039" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == narrow


@pytest.mark.parametrize(
    ("growth_s", "text"),
    [
        (0.0, "10.00 s, steps 0 to 19; no spikes, drift +0.0 %"),
        (1.0, "24.50 s, steps 10 to 19; no spikes, drift +22.7 %: not steady"),
    ],
)
def test_a_run_that_becomes_slower_is_not_steady(growth_s: float, text: str) -> None:
    steps = [Step(step=step, time_s=10.0 + growth_s * step) for step in range(20)]
    assert describe_steady_state(find_steady_state(steps)) == text
