"""Existing logs recorded as runs by `llmb.grade(..., save=True)`."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from parts.command_line import command_line
from parts.recorded_runs import record_runs

import llmb
from llmb.version import VERSION

POINT: dict[str, Any] = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz0123456789"

bundles = pytest.mark.xdist_group("report")  # a bundle needs matplotlib, which takes more than a second to import


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a folder of records of its own."""
    monkeypatch.setenv("LLMB_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write_log(file: Path, step_time_s: float = 7.0, *, steps: int = 50, more: str = "") -> Path:
    """Write a log of MaxText with steps that take about so long, and further lines before them."""
    lines = [
        f"completed step: {number}, seconds: {step_time_s + 0.001 * (number % 5):.3f}, TFLOP/s/device: 400.000, "
        f"Tokens/s/device: {8192 / step_time_s:.3f}, total_weights: 4194304, loss: {10 - 0.01 * number:.3f}"
        for number in range(steps)
    ]
    file.write_text("\n".join([more, *lines, ""]))
    return file


def save(*logs: Path, **options: Any) -> llmb.Grade:
    return llmb.grade(logs, **POINT, save=True, **options)


def test_a_saved_log_is_a_run_like_any_other(tmp_path: Path) -> None:
    graded = save(write_log(tmp_path / "a.log"))
    [run] = llmb.list_runs()
    assert graded.runs == (run.run_id,)
    assert run == llmb.find_run(run.run_id)
    assert (run.state, run.verdict, run.reason) == ("completed", graded.verdict, graded.reason)
    assert (run.metrics, run.window, run.steady_state) == (graded.metrics, graded.window, graded.steady_state)
    assert (run.recipe, run.gpu_type, run.dtype, run.gpus) == ("maxtext/llama2-70b", "h100", "bf16", 64)
    assert run.imported
    assert run.attempts == ()


def test_the_record_names_the_log_and_has_no_target(tmp_path: Path, home: Path) -> None:
    [run_id] = save(log := write_log(tmp_path / "a.log")).runs
    record = home / "runs" / run_id
    spec = tomllib.loads((record / "run.toml").read_text())
    assert spec["provenance"]["imported"] == [str(log)]
    assert "target" not in spec
    assert len((record / "steps.csv").read_text().splitlines()) == 51
    assert (record / "logs/a.log").read_bytes() == log.read_bytes()
    assert (record / "logs/a.log").stat().st_mode & 0o777 == 0o600


def test_logs_of_one_name_are_copied_to_different_files(tmp_path: Path, home: Path) -> None:
    logs = [tmp_path / name for name in ("x/a.log", "x/2.a.log", "y/a.log")]
    for number, log in enumerate(logs):
        log.parent.mkdir(exist_ok=True)
        write_log(log, 7.0 + number / 100)
    [run_id] = save(*logs).runs
    copies = [path.read_bytes() for path in (home / "runs" / run_id / "logs").iterdir()]
    assert sorted(copies) == sorted(log.read_bytes() for log in logs)


def test_repeats_are_judged_together(tmp_path: Path) -> None:
    logs = [write_log(tmp_path / f"{number}.log", 7.0 + number / 100) for number in range(3)]
    graded = save(*logs, repeats=True)
    runs = llmb.list_runs()
    assert {run.run_id for run in runs} == set(graded.runs)
    assert {run.first_repeat for run in runs} == {graded.runs[0]}
    [judged] = llmb.judge_sets(llmb.find_repeats([llmb.find_run(graded.runs[1])]))
    assert (judged.runs, judged.verdict, judged.reason) == (graded.runs, graded.verdict, graded.reason)


def test_a_log_that_is_not_of_the_configuration_is_not_compared(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.log", 7.0)
    [a] = save(log).runs
    log.write_text(log.read_text().replace("Tokens/s/device: 1170.286", "Tokens/s/device: 585.143"))
    other = save(log)
    assert other.reason.startswith("not comparable with the baseline: a step of the log has 4,09")
    assert llmb.compare(a, other.runs[0]).only_b == other.runs
    assert llmb.compare(other.runs[0], "baseline").points == ()


def test_a_log_that_was_saved_twice_counts_once(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.log", 7.0)
    [a], [again] = save(log).runs, save(log).runs
    [other] = save(write_log(tmp_path / "b.log", 7.01)).runs
    compared = llmb.compare(f"{a},{again},{other}", other)
    [point] = compared.points
    assert (point.a.runs, compared.only_a) == ((a, other), (again,))
    assert compared.not_compared == (("A", "a copy of another run", (again,)),)


def test_a_log_on_both_sides_has_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "a.log", 7.0)
    [a], [b] = save(log).runs, save(log).runs
    [other] = save(write_log(tmp_path / "b.log", 7.01)).runs
    run = command_line(capsys)
    note = f"note: {a} in A and {b} in B have the same log, so the change is too small"
    assert note in run("compare", a, b).out.splitlines()
    assert "same log" not in run("compare", a, other).out


def test_a_pipe_is_not_recorded(tmp_path: Path) -> None:
    pipe, log = tmp_path / "pipe", write_log(tmp_path / "a.log")
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(log.read_bytes()))
    writer.start()
    with pytest.raises(llmb.RecordError, match="pipe: cannot be recorded, because it can be read only once"):
        save(pipe)
    writer.join()
    assert llmb.list_runs() == []


def test_a_log_of_another_framework_is_not_recorded(tmp_path: Path) -> None:
    other = {"recipe": "nemo_launcher/llama3.1-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
    log = write_log(tmp_path / "a.log")
    assert llmb.grade(log, **other).reason == "written by maxtext; the recipe is for nemo_launcher"
    with pytest.raises(llmb.RecordError) as raised:
        llmb.grade(log, **other, save=True)
    assert str(raised.value) == (
        f"{log}: cannot be recorded as a run of nemo_launcher/llama3.1-70b: written by maxtext; "
        "expected --recipe with a recipe of maxtext, or no --save"
    )
    assert llmb.list_runs() == []


def test_saved_logs_are_compared(tmp_path: Path) -> None:
    [a] = save(write_log(tmp_path / "a.log", 7.0)).runs
    [b] = save(write_log(tmp_path / "b.log", 8.0)).runs
    compared = llmb.compare(a, b)
    assert [point.call for point in compared.points] == ["slower"]
    assert compared.differences == ()
    assert llmb.compare(b, "baseline").points[0].call == "slower"


@pytest.mark.parametrize("gpus", [64, 512, 1024])
def test_a_saved_log_of_many_nodes_has_the_published_parallelism(tmp_path: Path, home: Path, gpus: int) -> None:
    [run_id] = llmb.grade(write_log(tmp_path / "a.log"), **POINT | {"gpus": gpus}, save=True).runs
    spec = tomllib.loads((home / "runs" / run_id / "run.toml").read_text())
    assert spec["parallelism"]["fsdp"] == min(gpus, 128)
    assert llmb.compare(run_id, "baseline").differences == ()


def test_an_import_differs_from_a_started_run_only_by_its_settings(tmp_path: Path) -> None:
    [imported] = save(write_log(tmp_path / "a.log")).runs
    [started] = record_runs([[7.0] * 50], provenance={"llmb": VERSION, "kernel": "6.1", "env": {"NCCL_DEBUG": "INFO"}})
    settings = llmb.report([imported, started]).settings
    assert {each.key for each in settings if len(each.values) > 1} == set()
    assert {"kernel", "env.NCCL_DEBUG"} <= {each.key for each in settings}
    assert llmb.compare(imported, started).differences == ()


def test_no_secret_of_a_log_is_in_the_record(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_PASSWORD", "correct-horse-battery")
    secret_lines = f"HF_TOKEN={TOKEN}\nlogin correct-horse-battery"
    log = write_log(tmp_path / "a.log", steps=3, more=secret_lines)
    log.write_text(log.read_text() + f"RuntimeError: CUDA out of memory, token {TOKEN} correct-horse-battery\n")
    save(log)
    for file in home.rglob("*"):
        assert not file.is_file() or not any(each in file.read_bytes() for each in (TOKEN.encode(), b"correct-horse"))


def test_a_compressed_log_is_recorded_unpacked(tmp_path: Path, home: Path) -> None:
    plain = write_log(tmp_path / "a.log", more=f"HF_TOKEN={TOKEN}")
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    [run_id] = save(packed).runs
    copy = home / "runs" / run_id / "logs/a.log"
    assert len(copy.read_bytes()) == len(plain.read_bytes())
    assert TOKEN.encode() not in copy.read_bytes()


def test_a_failed_log_is_a_failed_run(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.log", steps=3)
    log.write_text(log.read_text() + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n")
    graded = save(log)
    [run] = llmb.list_runs()
    assert run.state == "failed"
    assert run.failure == graded.failure


FAILED = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
ValueError: boom
"""


def test_a_failed_log_without_a_baseline_states_why_the_run_failed(tmp_path: Path) -> None:
    (file := tmp_path / "mylm.toml").write_text(DECLARED.partition("[[recipe.baselines]]")[0])
    log = write_declared_log(tmp_path / "a.log", steps=5, end=FAILED)
    graded = llmb.grade(log, **POINT | {"recipe": str(file), "gpus": 8}, save=True)
    run = llmb.find_run(graded.runs[0])
    assert graded.failure
    assert (run.state, run.verdict) == ("failed", None)
    assert run.reason == f"the run did not complete: {graded.failure.cause}"


@pytest.mark.parametrize("name", ["evil.log", "my log.log"])
def test_the_remedy_of_a_recorded_failure_works_in_every_folder(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    log = write_log(Path(name), steps=5)
    log.write_text(log.read_text() + FAILED)
    graded = save(log)
    run = llmb.find_run(graded.runs[0])
    assert graded.failure
    assert run.failure
    assert name in graded.failure.remedy
    command = run.failure.remedy.split("`")[1]
    assert f"grep -rn -m 1 -A 40 'Traceback (most' {home / 'runs' / run.run_id / 'logs'} " in command
    monkeypatch.chdir("/")
    assert "ValueError: boom" in subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout


@bundles
def test_a_log_of_fewer_steps_than_the_recipe_is_no_completed_run(tmp_path: Path) -> None:
    graded = save(write_log(tmp_path / "a.log", steps=5))
    run = llmb.find_run(graded.runs[0])
    assert (run.state, run.verdict, run.reason) == ("failed", "undecided", graded.reason)
    assert (run.steps_done, run.steps_requested, run.window_complete) == (5, 50, False)
    assert llmb.verify_bundle(bundle(tmp_path, run.run_id)).mismatches == ()
    [run_id] = save(write_log(tmp_path / "b.log", steps=5), steps=5).runs
    assert llmb.find_run(run_id).state == "completed"


def test_a_failed_log_without_the_last_step_has_no_complete_window(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.log", steps=20)
    log.write_text(log.read_text() + FAILED)
    run = llmb.find_run(save(log).runs[0])
    assert run.metrics
    assert (run.state, run.steps_done, run.window, run.window_complete) == ("failed", 20, None, False)
    [run_id] = save(log, window=(10, 15)).runs
    assert llmb.find_run(run_id).window_complete


def test_an_import_is_never_driven(tmp_path: Path) -> None:
    save(write_log(tmp_path / "a.log"))
    with llmb.attach() as session:
        assert list(session.results) == []


def test_without_save_nothing_is_recorded(tmp_path: Path, home: Path) -> None:
    assert llmb.grade(write_log(tmp_path / "a.log"), **POINT).runs == ()
    assert not home.exists()


def test_the_json_of_a_grade_has_the_runs(tmp_path: Path) -> None:
    graded = save(write_log(tmp_path / "a.log"))
    assert json.loads(json.dumps(graded.as_dict()))["runs"] == list(graded.runs)


def test_logs_of_the_same_name_are_both_copied(tmp_path: Path, home: Path) -> None:
    for folder in ("node1", "node2"):
        (tmp_path / folder).mkdir()
    [run_id] = save(*(write_log(tmp_path / folder / "train.log") for folder in ("node1", "node2"))).runs
    assert {file.name for file in (home / "runs" / run_id / "logs").iterdir()} == {"train.log", "1.train.log"}


def test_a_folder_that_is_not_writable_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LLMB_HOME", str(tmp_path / "file"))
    with pytest.raises(llmb.RecordError, match="cannot be created"):
        save(write_log(tmp_path / "a.log"))


def bundle(folder: Path, *run_ids: str, redact: bool = False) -> Path:
    file = folder / "b.tar.gz"
    file.write_bytes(llmb.bundle(run_ids, redact=redact))
    return file


@bundles
@pytest.mark.parametrize("redact", [False, True])
def test_a_bundle_of_imports_is_computed_again_from_its_logs(tmp_path: Path, redact: bool) -> None:
    """The logs: one with another number of steps, repeats with a copy, ranks with equal file names, and a failure."""
    logs = [write_log(tmp_path / f"{number}.log", 7.0 + number / 100) for number in range(3)]
    runs = [*save(logs[0], steps=60).runs, *save(*logs, logs[0], repeats=True).runs]
    for folder in ("node1", "node2"):
        (tmp_path / folder).mkdir()
    runs += save(*(write_log(tmp_path / folder / "train.log") for folder in ("node1", "node2"))).runs
    failed = write_log(tmp_path / "failed.log", steps=3)
    failed.write_text(f"{failed.read_text()}torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n")
    runs += save(failed).runs
    check = llmb.verify_bundle(bundle(tmp_path, *runs, redact=redact))
    assert check.mismatches == ()
    assert set(check.run_ids) == set(runs)


@bundles
def test_a_changed_result_of_an_import_does_not_verify(tmp_path: Path, home: Path) -> None:
    [run_id] = save(write_log(tmp_path / "a.log", 8.0)).runs
    file = home / "runs" / run_id / "result.json"
    result = json.loads(file.read_text())
    file.write_text(json.dumps(result | {"verdict": "pass", "metrics": result["metrics"] | {"step_time_s": 7.0}}))
    mismatches = "\n".join(llmb.verify_bundle(bundle(tmp_path, run_id)).mismatches)
    assert "metrics.step_time_s is 7.0, but the logs give 8.0" in mismatches
    assert "verdict is pass, but the logs give fail" in mismatches


DECLARED = """
command = ["train.py"]
[log]
line = "step {step}: loss {loss}, time {time_s} s"
[recipe]
steps = 20
seq_len = 128
params = 50e3
dtypes = ["bf16"]
global_batch_size = 8
[[recipe.baselines]]
gpu_type = "h100"
dtype = "bf16"
gpus = 8
step_time_s = 0.5
"""


def write_declared_log(file: Path, *, steps: int = 20, end: str = "") -> Path:
    file.write_text("".join(f"step {number}: loss 3, time 0.6 s\n" for number in range(steps)) + end)
    return file


def test_a_log_of_gpus_that_do_not_fill_usual_nodes_is_recorded(tmp_path: Path) -> None:
    recipe = DECLARED.partition("[[recipe.baselines]]")[0].replace("batch_size = 8", "batch_size = 24")
    (file := tmp_path / "mylm.toml").write_text(recipe)
    log = write_declared_log(tmp_path / "a.log")
    [run_id] = llmb.grade(log, **POINT | {"recipe": str(file), "gpus": 12}, save=True).runs
    assert llmb.find_run(run_id).gpus == 12


@bundles
def test_a_log_is_recorded_with_the_file_of_its_recipe(tmp_path: Path) -> None:
    (file := tmp_path / "mylm.toml").write_text(DECLARED)
    log = write_declared_log(tmp_path / "a.log")
    [run_id] = llmb.grade(log, **POINT | {"recipe": str(file), "gpus": 8}, save=True).runs
    file.unlink()
    run = llmb.find_run(run_id)
    assert (run.recipe, run.state, run.verdict) == ("mylm/mylm", "completed", "fail")
    assert [point.call for point in llmb.compare(run_id, "baseline").points] == ["slower"]
    assert llmb.verify_bundle(bundle(tmp_path, run_id)).mismatches == ()
