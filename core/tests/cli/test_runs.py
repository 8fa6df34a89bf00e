"""``llmb runs``: filters, order, limit and output for programs."""

from __future__ import annotations

import csv
import io
import re
import shutil
import sys

import pytest
from parts.command_line import Llmb, command_line
from parts.recorded_runs import record_runs

from llmb import Failure, RecordError, find_run
from llmb.paths import runs_folder

STEADY = [7.0] * 10


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def test_ids_are_for_other_commands(llmb: Llmb) -> None:
    small, large = record_runs([STEADY]), record_runs([STEADY], workload={"gpus": 128})
    assert llmb("runs", "gpus=64", "--ids").out.split() == small
    assert llmb("runs", "gpus=100..512", "--ids").out.split() == large
    assert llmb("runs", "{gpus=64 state=completed}", "--ids").out.split() == small
    assert llmb("runs", "--ids", "--limit", "1").out.count("\n") == 1
    nothing = llmb("runs", "verdict=fail", "--ids")
    assert (nothing.status, nothing.out, nothing.err) == (0, "", "")


def test_json_has_all_runs_that_match(llmb: Llmb) -> None:
    ids = record_runs([STEADY, STEADY])
    assert {run["run_id"] for run in llmb("runs", "--json").json["runs"]} == set(ids)
    assert len(llmb("runs", "--json", "--limit", "1").json["runs"]) == 1
    assert llmb("runs", "state=failed", "--json").json == {"runs": []}


def test_a_long_list_ends_with_the_number_of_all_runs(llmb: Llmb) -> None:
    record_runs([STEADY] * 3)
    answer = llmb("runs", "--limit", "2")
    assert answer.out.count("completed") == 2
    assert "\nthe newest 2 of 3 runs; --all lists all\n" in answer.out
    by_time = llmb("runs", "--limit", "2", "--sort", "step_time").out
    assert "\nby step_time, the first 2 of 3 runs; --all lists all\n" in by_time
    assert "--all lists all" not in llmb("runs", "--all").out


def test_runs_are_selected_by_their_swept_values(llmb: Llmb) -> None:
    swept = [
        {"env.NCCL_ALGO": algorithm, "target.nodelist": nodes} for algorithm, nodes in (("Ring", "n1"), ("Tree", "n11"))
    ]
    [[ring], [tree], [alone]] = [record_runs([STEADY], provenance={"sweep": each}) for each in (*swept, {})]
    for given, found in (
        ("sweep=env.NCCL_ALGO=Ring", {ring}),
        ("sweep=*ALGO=Ring,*ALGO=Tree", {ring, tree}),
        ("sweep=*nodelist=n1", {ring}),
        ("sweep=env.NCCL*", {ring, tree}),
        ("sweep!=*NCCL_ALGO=*", {alone}),
    ):
        assert set(llmb("runs", given, "--ids").out.split()) == found


def test_an_invalid_filter_names_the_closest_one(llmb: Llmb) -> None:
    for argument, message in (
        ("gpu=3", "unknown filter 'gpu=3'; expected recipe, image, target"),
        ("state=complete", "did you mean 'completed'?"),
        ("gpus", "verdict, since, until\n"),
        ("gpu", "invalid filter 'gpu'; expected key=value with one of the keys recipe, image, target"),
        ("failed", "sweep, state, verdict, since, until (did you mean 'state=failed'?)"),
        ("since=yesterday", "invalid since 'yesterday'; expected 7d or 2026-11-01"),
        ("since=99999999999d", "invalid since '99999999999d': before the year 1; expected 7d or 2026-11-01"),
    ):
        answer = llmb("runs", argument)
        assert (answer.status, answer.out) == (2, "")
        assert message in answer.err


def test_the_list_shows_why_runs_did_not_complete(llmb: Llmb) -> None:
    failure = Failure(cause="the accelerator is out of memory")
    record_runs([STEADY])
    record_runs([[]], state="failed", failure=failure)
    record_runs([[]], state="lost", reason="the scheduler does not know the job, " + 20 * "and so on, ")
    titles, *lines = llmb("runs").out.splitlines()
    assert titles.split()[:5] == ["run", "state", "verdict", "s/step", "detail"]
    completed, failed, lost = sorted(line.split(maxsplit=1)[1] for line in lines)
    assert completed.split()[:3] == ["completed", "pass", "7.000"]
    assert failed.split("  ")[0] == "failed"
    assert "  the accelerator is out of memory  " in failed
    assert "  the scheduler does not know the job, and so on, and so ...  " in lost


def test_a_damaged_record_is_named_in_one_line(llmb: Llmb) -> None:
    [run_id] = record_runs([STEADY])
    (runs_folder() / run_id / "run.toml").write_text("[")
    answer = llmb("runs")
    assert (answer.status, answer.err.count("\n")) == (0, 1)
    assert answer.err.startswith(f"llmb: {run_id}: ")
    assert "run.toml is damaged" in answer.err


def test_runs_as_csv_and_as_prometheus_metrics(llmb: Llmb) -> None:
    [run_id] = record_runs([STEADY])
    rows = list(csv.DictReader(io.StringIO(llmb("runs", "--csv").out)))
    assert [(row["run_id"], row["verdict"]) for row in rows] == [(run_id, "pass")]
    text = llmb("runs", "--prometheus").out
    labels = f'run_id="{run_id}",recipe="maxtext/llama2-70b",gpu_type="h100",dtype="bf16",gpus="64",variant=""'
    assert f"# TYPE llmb_step_time_seconds gauge\nllmb_step_time_seconds{{{labels}}} 7.0\n" in text
    assert f'llmb_run_info{{{labels},state="completed",verdict="pass"}} 1\n' in text
    assert llmb("runs", "--csv", "--json").status == 2


def test_the_steps_of_a_run_are_csv_and_columns(llmb: Llmb) -> None:
    [run_id] = record_runs([[7.0, 7.25]])
    assert llmb("show", run_id, "--csv").out.splitlines()[:3] == [
        "step,time_s,loss,tflops_per_gpu,tokens_per_s_per_gpu,mean_of,attempt",
        "1,7.0,10.0,,,1,0",
        "2,7.25,5.0,,,1,0",
    ]
    columns = find_run(run_id).steps
    assert (columns["step"], columns["time_s"], columns["tflops_per_gpu"]) == ([1, 2], [7.0, 7.25], [None, None])
    (runs_folder() / run_id / "steps.csv").unlink()
    assert find_run(run_id).steps == {}
    answer = llmb("show", run_id, "--csv")
    assert (answer.status, answer.out) == (2, "")
    assert "steps.csv is missing" in " ".join(answer.err.split())
    events = runs_folder() / run_id / "events.jsonl"
    events.write_text(events.read_text().splitlines()[0] + "\n")
    assert "has no steps yet" in llmb("show", run_id, "--csv").err
    (runs_folder() / run_id / "steps.csv").write_text("step,time_s\n1\n")
    with pytest.raises(RecordError, match=r"steps\.csv is damaged"):
        find_run(run_id).steps  # noqa: B018  # it reads the file


LONG = {"recipe": "megatron_bridge/gpt-oss-120b@26.06.01", "gpu_type": "gb300", "variant": "v2"}


@pytest.mark.parametrize(("columns", "is_short"), [(80, False), (60, True)])
def test_a_narrow_terminal_shows_step_times_and_ids_that_can_be_pasted(
    llmb: Llmb, monkeypatch: pytest.MonkeyPatch, columns: int, is_short: bool
) -> None:
    ids = sorted(record_runs([STEADY, STEADY], workload=LONG))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    titles, *lines = re.sub(r"\x1b\[\d*m", "", llmb("runs").out).splitlines()
    assert titles.split()[:4] == ["run", "state", "verdict", "s/step"]
    assert max(map(len, lines)) <= columns
    rows = sorted(line.split() for line in lines if "completed" in line)
    for run_id, row in zip(ids, rows, strict=True):
        assert "7.000" in row
        assert row[0].endswith("…") == is_short
        assert find_run(row[0]).run_id == run_id


def test_a_shortened_id_is_the_beginning_of_one_run(llmb: Llmb, monkeypatch: pytest.MonkeyPatch) -> None:
    [run_id] = record_runs([STEADY], workload=LONG)
    other = runs_folder() / f"{run_id[:-2]}7"
    shutil.copytree(runs_folder() / run_id, other)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    out = llmb("runs").out
    assert (run_id in out, other.name in out) == (True, True)
