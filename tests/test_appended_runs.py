"""Logs that contain several runs: restarted jobs, and jobs that append to the same file."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

REAL = Path(__file__).parents[2] / "shared" / "logs"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.16 GiB.\n"

FORMATS = {
    "maxtext": "completed step: {step}, seconds: {time_s:.3f}, loss: 8.0\n",
    "megatron_bridge": " iteration {step}/ 100 | elapsed time per iteration (ms): {time_s}000.0 | lm loss: 1.0 |\n",
    "nemo_launcher": "Training epoch 0, iteration {step}/99 | train_step_timing in s: {time_s} | global_step: {step}\n",
    "nemo_launcher bar": "\rEpoch 0: :  1%|x | {step}/100 [00:01<00:02, train_step_timing in s={time_s}, g={step}]",
}


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def run_of(line: str, time_s: int, count: int, ranks: int = 1) -> str:
    return "".join(line.format(step=step, time_s=time_s) * ranks for step in range(1, count + 1))


def three_runs(line: str, between: str = OOM) -> str:
    return between.join(run_of(line, time_s, count) for time_s, count in [(3, 12), (4, 14), (5, 13)])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "between", ["=== END ===\n", OOM, ("x" * 9999 + "\n") * 110], ids=["separator", "failure", "blocks"]
)
@pytest.mark.parametrize(("run", "time_s", "count"), [(None, 5, 13), (1, 3, 12), (2, 4, 14)])
def test_each_run_of_a_log_can_be_selected(
    llmb: Llmb, tmp_path: Path, name: str, between: str, run: int | None, time_s: int, count: int
) -> None:
    path = tmp_path / "run.log"
    path.write_text(three_runs(FORMATS[name], between))

    found = llmb("parse", path, "--framework", name.split()[0], *(["--run", run] if run else []), "--json").json

    assert found["runs_in_log"] == 3
    assert [step["time_s"] for step in found["steps"]] == [time_s] * count


def test_an_earlier_run_has_its_own_failure(llmb: Llmb, tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    path.write_bytes(gzip.compress(three_runs(FORMATS["maxtext"]).encode()))

    first = llmb("parse", path, "--framework", "maxtext", "--run", 1, "--json").json
    last = llmb("parse", path, "--framework", "maxtext", "--json").json

    assert (first["status"], first["failure"]["line"]) == ("incomplete", 13)
    assert (last["status"], last["failure"]) == ("complete", None)


def test_steps_printed_by_several_ranks_are_one_run(llmb: Llmb, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(run_of(FORMATS["maxtext"], 3, 12, ranks=4) * 2)

    assert llmb("parse", path, "--framework", "maxtext", "--json").json["runs_in_log"] == 2
    assert "run 2 of 2 in the log" in llmb("parse", path, "--framework", "maxtext").out


def test_a_run_whose_launcher_adds_labels_is_a_new_run(llmb: Llmb, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    first, second = run_of(FORMATS["maxtext"], 3, 12), run_of(FORMATS["maxtext"], 4, 12)
    path.write_text(first + "".join(f"node-7: {line}" for line in second.splitlines(keepends=True)))

    assert llmb("parse", path, "--framework", "maxtext", "--json").json["runs_in_log"] == 2


def test_a_run_that_a_log_lacks_is_an_error(llmb: Llmb, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(three_runs(FORMATS["maxtext"]))

    answer = llmb("parse", path, "--framework", "maxtext", "--run", 4)

    assert (answer.status, answer.out) == (2, "")
    assert answer.err == f"llmb: {path}: no run 4; the log has 3 runs\n"


def test_a_file_without_steps_hides_no_run_of_other_logs(llmb: Llmb, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(three_runs(FORMATS["maxtext"]))
    (tmp_path / "notes.log").write_text("all is well\n")

    answer = llmb("parse", tmp_path, "--framework", "maxtext", "--run", 1)

    assert answer.status == 0
    assert "no run" not in answer.err
    alone = llmb("parse", tmp_path / "notes.log", "--framework", "maxtext", "--run", 1)
    assert (alone.status, alone.err) == (1, f"llmb: {tmp_path}/notes.log: no maxtext steps found; check --framework\n")


def test_a_log_without_steps_has_no_run(llmb: Llmb, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("all is well\n")

    assert llmb("parse", path, "--framework", "maxtext", "--json").json["runs_in_log"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "framework", "runs"),
    [("megatron/15", "megatron_bridge", 3), ("megatron/17", "megatron_bridge", 6), ("maxtext/07", "maxtext", 1)],
)
def test_the_runs_of_a_real_log_are_counted(llmb: Llmb, name: str, framework: str, runs: int) -> None:
    if not REAL.is_dir():
        pytest.skip("the real logs are not here")
    [path] = REAL.glob(f"{name}-*")

    assert llmb("parse", path, "--framework", framework, "--json").json["runs_in_log"] == runs
    for run in range(1, runs + 1):
        found = llmb("parse", path, "--framework", framework, "--run", run, "--json").json
        assert len({step["step"] for step in found["steps"]}) == len(found["steps"]) > 0


@pytest.mark.parametrize("name", FORMATS)
def test_a_log_with_its_newest_line_first_is_one_run_and_has_a_warning(llmb: Llmb, tmp_path: Path, name: str) -> None:
    log = tmp_path / "run.log"
    lines = run_of(FORMATS[name], 2, 50).splitlines(keepends=True)
    log.write_text("".join(reversed(lines)))

    answer = llmb("parse", log, "--json")

    assert (answer.status, answer.json["runs_in_log"]) == (0, 1)
    assert [step["step"] for step in answer.json["steps"]] == list(range(1, 51))
    assert "the newest line comes first" in answer.err
    assert "`tac`" in answer.err
    log.write_text("".join(lines))
    assert "newest line" not in llmb("parse", log).err
