"""``llmb compare``: records of runs with known step times and settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import tomli_w
from parts.command_line import Llmb, command_line

import llmb as library
from llmb.analysis.measuring_window import MeasuredWindow
from llmb.analysis.metrics import compute_run_metrics
from llmb.analysis.steady_state import SteadyState
from llmb.judging.host_ranges import fold_hosts
from llmb.paths import runs_folder
from llmb.records.record import RunRecord
from llmb.records.result import read_result
from llmb.spec.run_ids import draw_run_ids
from llmb.spec.spec_of_run import build_run_toml
from llmb.state_machine.events import Ended
from llmb.values.errors import RecordError, SpecError

Record = Callable[..., str]
POINT = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
PUBLISHED_S = 6.999


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Return a function that records a completed run with this step time (s), and returns its id."""

    def create(
        time_s: float | None = 7.0,
        *,
        steady_s: float | None = None,
        workload: dict[str, Any] | None = None,
        provenance: dict[str, Any] | None = None,
        **tables: dict[str, Any],
    ) -> str:
        target = {"scheduler": "local", "workdir": str(tmp_path / "work"), "lock": str(tmp_path / "lock")}
        spec = {"workload": POINT | (workload or {}), "target": target} | tables
        [run] = draw_run_ids(library.load(spec)).runs
        directory = runs_folder() / run.run.id
        made = RunRecord(directory)
        made.create(
            tomli_w.dumps(build_run_toml(run, {"created": "2026-11-01T00:00:00+00:00", **(provenance or {})})), ""
        )
        made.add_events([Ended(run_id=run.run.id, state="completed")])
        if time_s is not None:
            window = MeasuredWindow(first=49, last=49, count=1, step_time_s=time_s, step_time_std_s=None)
            result = attrs.evolve(
                read_result(made),
                metrics=compute_run_metrics(run.run, time_s, None, 989e12),
                window=window,
                steady_state=steady_state(steady_s or time_s),
            )
            made.write_result(result.as_dict(), [])
        return run.run.id

    return create


def steady_state(time_s: float) -> SteadyState:
    return SteadyState(
        first=1,
        last=49,
        count=49,
        step_time_s=time_s,
        step_time_std_s=0.0,
        drift=0.0,
        spikes=(),
        spike_share=0.0,
        spike_period=None,
        autocorrelation=0.0,
    )


def differences(found: dict[str, Any]) -> list[tuple[str, str, str, str, int]]:
    return [(each["kind"], each["key"], each["a"], each["b"], each["points"]) for each in found["differences"]]


def test_equal_points_are_compared_side_by_side(llmb: Llmb, record: Record) -> None:
    a = [record(7.0), record(7.02), record(14.0, workload={"gpus": 128}), record(workload={"gpus": 256})]
    b = [record(7.5), record(7.52), record(14.02, workload={"gpus": 128})]
    answer = llmb("compare", ",".join(a), ",".join(b), "--json")
    found = answer.json

    assert (answer.status, found["a"], found["b"]) == (0, a, b)
    small, large = found["points"]
    assert (small["gpus"], small["recipe"], small["dtype"], small["call"]) == (64, POINT["recipe"], "bf16", "slower")
    assert small["change"] == pytest.approx(0.0713, abs=1e-4)
    assert (small["a"]["runs"], small["a"]["step_time_s"]) == (a[:2], pytest.approx(7.01))
    assert small["a"].keys() == {"runs", "left_out", "step_time_s", "tokens_per_s", "mfu"}
    assert (large["gpus"], large["call"], large["test"]) == (128, "none", None)
    assert (found["only_a"], found["only_b"]) == ([a[3]], [])
    assert found["geometric_mean_change"] == pytest.approx(((1 + small["change"]) * (1 + large["change"])) ** 0.5 - 1)


@pytest.mark.parametrize(
    ("b_s", "options", "status"),
    [(7.5, (), 0), (7.5, ("--check",), 3), (7.5, ("--check", "--tolerance", "0.1"), 0), (7.1, ("--check",), 0)],
)
def test_with_check_a_slower_point_exits_with_3(
    llmb: Llmb, record: Record, b_s: float, options: tuple[str, ...], status: int
) -> None:
    assert llmb("compare", record(7.0), record(b_s), *options).status == status


def test_runs_without_a_point_in_common_exit_with_1(llmb: Llmb, record: Record) -> None:
    a, b = record(), record(workload={"gpus": 128})
    answer = llmb("compare", a, b)
    assert answer.status == 1
    assert answer.out.splitlines() == [f"not compared, only in A: {a}", f"not compared, only in B: {b}"]
    assert "nothing to compare: no run has a point in common: gpus is 64 in A, 128 in B; global_batch" in answer.err
    assert "apart" not in llmb("compare", a, b, "--json").json
    batch = record(parallelism={"global_batch_size": 256})
    assert "common: global_batch_size is 128 in A, 256 in B" in llmb("compare", a, batch).err
    assert llmb("compare", a, record(None)).status == 1


def test_a_value_that_one_of_two_points_lacks_is_not_set(llmb: Llmb, record: Record) -> None:
    of_bridge = {"recipe": "megatron_bridge/llama3.1-8b", "gpu_type": "gb300", "gpus": 8}
    a, b = (record(workload=of_bridge | {"dtype": dtype}) for dtype in ("fp8", "nvfp4"))
    assert "dtype is fp8 in A, nvfp4 in B; variant is cs in A, not set in B" in llmb("compare", a, b).err


def test_a_comparison_names_runs_that_make_no_sense_in_it(llmb: Llmb, record: Record) -> None:
    a, b = record(7.0), record(2.0)
    assert "note:" not in llmb("compare", a, record(8.0)).out
    lines = llmb("compare", f"{a},{b}", b).out.splitlines()
    assert f"note: on both sides, so the change is too small: {b}" in lines
    assert "note: MFU above 100 % is impossible: 184.1 % in B, llama2-70b h100 bf16 64 GPUs" in lines
    assert "note: MFU above 100 % is impossible" in llmb("compare", b, "baseline").out


def test_a_comparison_counts_its_runs_and_states_why_others_do_not_count(llmb: Llmb, record: Record) -> None:
    a, unmeasured, other, off = record(7.0), record(None), record(workload={"gpus": 256}), record(14.0, steady_s=7.0)
    header, *lines = llmb("compare", f"{a},{unmeasured},{other},{off}", record(8.0)).out.splitlines()
    assert " ".join(header.split()) == "step time (s) A: 1 of 4 runs B: 1 run change"
    assert f"not compared in A, without a comparable step time: {unmeasured}" in lines
    assert f"not compared, only in A: {other}" in lines
    assert f"not compared, without a comparable step time: {unmeasured}" in llmb("compare", unmeasured, "baseline").out


def test_a_comparison_names_the_first_of_many_runs(llmb: Llmb, record: Record) -> None:
    others = [record(workload={"gpus": 256}) for _ in range(6)]
    answer = llmb("compare", ",".join([record(), *others]), record())
    assert f"not compared, only in A: {', '.join(others[:4])} and 2 more\n" in answer.out


def test_a_run_that_does_not_exist_exits_with_2(llmb: Llmb, record: Record) -> None:
    answer = llmb("compare", record(), "nothing")
    assert (answer.status, answer.out) == (2, "")
    assert "no run 'nothing'" in answer.err


@pytest.mark.parametrize(("b", "run"), [("{gpus=64 dtype=bf16}", "'{gpus=64 dtype=bf16}'"), ("baseline", "RUN")])
def test_the_baseline_is_the_second_side(llmb: Llmb, b: str, run: str) -> None:
    answer = llmb("compare", "baseline", b)
    line = f"llmb: `baseline` can only be the second side; use `llmb compare {run} baseline`"
    assert (answer.status, " ".join(answer.err.split())) == (2, line)


def test_a_run_whose_window_is_off_is_left_out(record: Record) -> None:
    stalled = record(20.0, steady_s=7.0)
    [point] = library.compare(f"{record(7.0)},{stalled}", record(7.0)).points
    assert (point.a.left_out, point.change, point.call) == ((stalled,), 0, "none")


def test_four_runs_per_side_add_the_rank_test(record: Record) -> None:
    a, b = (",".join(record(mean_s + each / 1000) for each in range(4)) for mean_s in (7.0, 8.0))
    [point] = library.compare(a, b).points
    assert point.test
    assert (point.test.name, point.test.p) == ("Mann-Whitney U", pytest.approx(0.0286, abs=1e-4))


def test_differences_are_ranked_by_kind_and_by_the_number_of_points(llmb: Llmb, record: Record) -> None:
    a_env, b_env = {"NCCL_IB_SL": "1"}, {"NCCL_ALGO": "Ring"}
    a_node = {"host": ["n001", "n002", "n003"], "driver": "570.1", "nccl": "2.27"}
    b_node = {"host": ["n101", "n102", "n103"], "driver": "570.1", "nccl": "2.28"}
    a = [record(7.0, env=a_env, provenance=a_node), record(14.0, workload={"gpus": 128}, provenance=a_node)]
    b = [
        record(7.0, env=b_env, provenance=b_node, workload={"image": "nemo:24.12"}),
        record(14.0, workload={"gpus": 128, "image": "nemo:24.12"}, provenance=b_node),
    ]
    answer = llmb("compare", ",".join(a), ",".join(b), "--json")
    assert differences(answer.json) == [
        ("image", "workload.image", "ghcr.io/nvidia/jax:maxtext-2024-12-09", "nemo:24.12", 2),
        ("environment", "env.NCCL_ALGO", "not set", "Ring", 1),
        ("environment", "env.NCCL_IB_SL", "1", "not set", 1),
        ("system", "nccl", "2.27", "2.28", 2),
        ("hosts", "hosts", "n[001-003]", "n[101-103]", 2),
    ]
    lines = llmb("compare", ",".join(a), ",".join(b)).out.splitlines()
    assert "  env NCCL_IB_SL  1                                      not set     1 of 2 points" in lines


def test_values_that_llmb_or_a_terminal_generates_are_no_differences(record: Record) -> None:
    ranks = ("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    generated = (*ranks, "LLMB_RUN_DIR", "MASTER_PORT", "HOSTNAME", "TERM", "TERM_PROGRAM", "TMUX", "TMUX_PANE")
    sides = [
        record(provenance={"env": {name: f"{name}{side}" for name in generated}, "job_id": side, "created": side})
        for side in ("2026-11-01", "2026-11-02")
    ]
    assert library.compare(*sides).differences == ()


def test_an_environment_that_only_one_side_reported_is_not_compared(record: Record) -> None:
    reported = {"env": {"NCCL_IB_SL": "1", "OMP_NUM_THREADS": "4"}}
    assert library.compare(record(provenance=reported), record()).differences == ()
    other = {"env": {"NCCL_IB_SL": "2", "OMP_NUM_THREADS": "4"}}
    [difference] = library.compare(record(provenance=reported), record(provenance=other)).differences
    assert (difference.key, difference.a, difference.b) == ("env.NCCL_IB_SL", "1", "2")


def test_a_run_is_compared_with_its_published_configuration(llmb: Llmb, record: Record) -> None:
    run = record(7.7, env={"NCCL_ALGO": "Ring"}, parallelism={"micro_batch_size": 1})
    answer = llmb("compare", run, "baseline", "--json")
    [point] = answer.json["points"]
    assert (answer.json["b"], point["b"]["step_time_s"], point["call"]) == ("baseline", PUBLISHED_S, "slower")
    assert point["change"] == pytest.approx(7.7 / PUBLISHED_S - 1)
    assert point["margin"] == pytest.approx(0.0118 * 7.7 / PUBLISHED_S, abs=1e-4)
    assert differences(answer.json) == [
        ("parallelism", "parallelism.micro_batch_size", "1", "2", 1),
        ("parallelism", "target.gpus_per_node", "64", "8", 1),
        ("environment", "env.NCCL_ALGO", "Ring", "not set", 1),
    ]
    assert "baseline" in llmb("compare", run, "baseline").out


def test_a_variable_that_the_job_reports_differs_from_the_published_configuration(record: Record) -> None:
    env = {"NCCL_ALGO": "Ring"}
    run = record(env=env, provenance={"env": {**env, "OMP_NUM_THREADS": "4"}})
    found = differences(library.compare(run, "baseline").as_dict())
    assert [each for each in found if each[0] == "environment"] == [
        ("environment", "env.NCCL_ALGO", "Ring", "not set", 1)
    ]


def test_a_changed_variable_of_a_recipe_is_shown_with_its_published_value(record: Record) -> None:
    env = {"NCCL_IB_SL": "3"}
    found = differences(library.compare(record(env=env, provenance={"env": env}), "baseline").as_dict())
    assert ("environment", "env.NCCL_IB_SL", "3", "1", 1) in found


def test_settings_of_the_target_that_replace_those_of_the_recipe_are_shown(record: Record, tmp_path: Path) -> None:
    target = {"scheduler": "local", "workdir": str(tmp_path / "work"), "lock": str(tmp_path / "lock")}
    run = record(target={**target, "env": {"NCCL_IB_SL": "3", "SITE": "a"}})
    found = differences(library.compare(run, "baseline").as_dict())
    assert [each for each in found if ".env." in each[1]] == [("system", "target.env.NCCL_IB_SL", "3", "1", 1)]


def test_a_profiled_run_differs_from_the_published_configuration(record: Record) -> None:
    run = record(profile={"tool": "nsys", "start_step": 20, "stop_step": 22})
    found = differences(library.compare(run, "baseline").as_dict())
    assert ("arguments", "profile.tool", "nsys", "not set", 1) in found


def test_a_run_whose_step_time_was_not_judged_is_named_with_the_reason(llmb: Llmb, record: Record) -> None:
    run = record(5.0)
    file = runs_folder() / run / "result.json"
    reason = "the job ran on NVIDIA B200, not h100"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"verdict": "undecided", "reason": reason}))
    assert f"note: {run}: {reason}\n" in llmb("compare", run, "baseline").out
    judged = json.loads(file.read_text()) | {"reason": "ratio 0.714", "interval": [0.71, 0.72]}
    file.write_text(json.dumps(judged))
    assert "note:" not in llmb("compare", run, "baseline").out


def test_a_run_without_a_published_step_time_is_named_as_such(llmb: Llmb, record: Record) -> None:
    unpublished = record(workload={"recipe": "maxtext/llama2-tiny", "gpu_type": "cpu", "dtype": "fp32", "gpus": 1})
    shown = llmb("compare", f"{record()},{unpublished}", "baseline").out
    assert f"not compared, without a published step time: {unpublished}\n" in shown


def test_a_window_that_is_off_the_steady_state_is_not_slower_than_published(llmb: Llmb, record: Record) -> None:
    stalled = record(2 * PUBLISHED_S, steady_s=PUBLISHED_S)
    [point] = library.compare(stalled, "baseline").points
    assert (point.change, point.call) == (pytest.approx(1), "none")
    shown = llmb("compare", stalled, "baseline").out
    assert "~ the window is off the steady state" in shown
    assert "within noise" not in shown


def test_the_published_configuration_is_the_one_of_the_variant(record: Record) -> None:
    point = {"recipe": "megatron_bridge/llama3.1-70b@26.06", "gpu_type": "gb300", "dtype": "fp8", "variant": "mxfp8"}
    run = record(7.0, workload=point, parallelism={"micro_batch_size": 2})
    found = library.compare(run, "baseline").as_dict()
    assert ("parallelism", "parallelism.micro_batch_size", "2", "1", 1) in differences(found)


COMPARISON = """\
step time (s)         A: 3 runs  B: 3 runs  change
llama2-70b h100 bf16
   64 GPUs                7.000      7.500  +7.1 % +- 1.0 %  slower
  128 GPUs                14.00      14.01  +0.1 % +- 2.3 %  ~
geometric mean                              +3.5 %
~ within noise; with 4 runs per side, a Mann-Whitney U test is added
"""


def test_the_screen_of_a_comparison(llmb: Llmb, record: Record) -> None:
    sides = [
        [record(time_s), record(time_s), record(large_s, workload={"gpus": 128})]
        for time_s, large_s in ((7.0, 14.0), (7.5, 14.01))
    ]
    assert llmb("compare", *map(",".join, sides)).out == COMPARISON


def test_points_of_other_sizes_on_the_same_gpus_are_named(llmb: Llmb, record: Record) -> None:
    tables: list[dict[str, Any]] = [{}, {"parallelism": {"global_batch_size": 256}}]
    sides = [",".join(record(time_s, **each) for each in tables) for time_s in (7.0, 7.5)]
    shown = llmb("compare", *sides).out
    for size in (128, 256):
        assert f"  64 GPUs, global_batch_size={size}  " in shown
        assert f"64, global_batch_size={size}" in library.compare(*sides)._repr_html_()
    points = llmb("compare", *sides, "--json").json["points"]
    sizes = [(each["layers"], each["seq_len"], each["global_batch_size"]) for each in points]
    assert sizes == [(80, 4096, 128), (80, 4096, 256)]


def test_a_change_that_barely_exceeds_its_margin_has_another_decimal(llmb: Llmb, record: Record) -> None:
    recipe = {"recipe": "nemo_launcher/llama3.1-70b", "dtype": "fp8"}
    runs = [record(time_s, workload=recipe) for time_s in (11.0, 11.1, 11.2)]
    assert "+0.82 % +- 0.81 %  slower" in llmb("compare", ",".join(runs), "baseline").out


@pytest.mark.parametrize(
    ("filters", "matching"),
    [
        ("{gpus=64}", {"small"}),
        ("{gpus=100..512}", {"large"}),
        ("{gpus=64,128 dtype=bf16}", {"small", "large"}),
        ("{image=*maxtext-2024* recipe=maxtext/*}", {"large"}),
        ("{image=nemo:*}", {"small"}),
        ("{state=completed since=2026-10-01}", {"small", "large"}),
        ("{until=2026-10-01}", set()),
        ("{since=1h}", set()),
    ],
)
def test_filters_in_braces_select_runs(record: Record, filters: str, matching: set[str]) -> None:
    runs = {"small": record(workload={"image": "nemo:24.12"}), "large": record(workload={"gpus": 128})}
    if not matching:
        with pytest.raises(RecordError, match="no run matches"):
            library.compare(filters, runs["small"])
        return
    assert set(library.compare(filters, runs["small"]).a) == {runs[name] for name in matching}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ("{gpu=64}", "unknown filter 'gpu=64'.*gpus"),
        ("{state=complete}", "unknown state 'complete'.*completed"),
        ("{gpus=many}", "invalid gpus 'many'"),
        ("{gpus=512..64}", "invalid gpus '512..64'; expected a number such as 64, or 64..512"),
        ("{since=yesterday}", "invalid since 'yesterday'"),
    ],
)
def test_an_invalid_filter_names_the_nearest_valid_one(record: Record, filters: str, message: str) -> None:
    run = record()
    with pytest.raises(SpecError, match=message):
        library.compare(filters, run)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["n001", "n002", "n003"], "n[001-003]"),
        (["n1", "n2", "n10"], "n[1-2,10]"),
        (["a", "b7"], "a,b7"),
        (["gpu-9", "gpu-10", "gpu-12", "login"], "gpu-[9,10,12],login"),
        (["node", "node1", "node2"], "node,node[1-2]"),
    ],
)
def test_host_names_are_folded(names: list[str], folded: str) -> None:
    assert fold_hosts(names) == folded


def test_the_library_returns_what_json_prints(llmb: Llmb, record: Record) -> None:
    a, b = record(7.0), record(7.5)
    assert json.loads(json.dumps(library.compare(a, b).as_dict())) == llmb("compare", a, b, "--json").json


def test_mfu_is_not_compared_if_the_flops_were_counted_differently(record: Record) -> None:
    a, b = record(7.0), record(7.1)
    [same] = library.compare(a, b).points
    assert (same.a.mfu, same.b.mfu) == (pytest.approx(0.5258, abs=1e-3), pytest.approx(0.5184, abs=1e-3))
    made = RunRecord(runs_folder() / b)
    result = read_result(made)
    assert result.metrics is not None
    metrics = attrs.evolve(result.metrics, flops_per_sequence=1.2 * result.metrics.flops_per_sequence)
    made.write_result(attrs.evolve(result, metrics=metrics).as_dict(), [])
    [other] = library.compare(a, b).points
    assert (other.a.mfu, other.b.mfu, other.change) == (None, None, same.change)
