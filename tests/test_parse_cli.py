"""``llmb parse``, as text, CSV and JSON."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from parts.command_line import Answer, Llmb, command_line
from parts.deadline import DEADLINE_S

STEP_KEYS = ["step", "time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu"]
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."
SUMMARY_KEYS = ["window", "count", "step_time_s", "step_time_std_s", "tflops_per_gpu", "tflops_per_gpu_std"]


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.fixture
def parse(llmb: Llmb) -> Llmb:
    """Run ``llmb parse --framework maxtext`` with more arguments."""
    return lambda *arguments: llmb("parse", *arguments, "--framework", "maxtext")


def line(step: int, time_s: float = 2.0, loss: float = 8.0) -> str:
    rate = f"TFLOP/s/device: {800 / time_s:.3f}, Tokens/s/device: {4096 / time_s:.3f}"
    return f"completed step: {step}, seconds: {time_s:.3f}, {rate}, total_weights: 4096, loss: {loss:.3f}\n"


def write(path: Path, times: Sequence[float], first: int = 0, end: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line(first + place, time_s) for place, time_s in enumerate(times)) + end)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "run.log", [40.0, 0.5, 2.0, 2.0, 2.5])


# One log


def test_one_log_has_the_keys_of_the_contract(parse: Llmb, log: Path) -> None:
    answer = parse(log, "--json")

    assert (answer.status, answer.err) == (0, "")
    assert list(answer.json) == ["framework", "status", "steps", "summary", "steady_state", "runs_in_log", "failure"]
    assert (answer.json["framework"], answer.json["status"], answer.json["failure"]) == ("maxtext", "complete", None)
    assert list(answer.json["steps"][0])[:5] == STEP_KEYS
    assert answer.json["steps"][2] == {
        "step": 2,
        "time_s": 2.0,
        "loss": 8.0,
        "tflops_per_gpu": 400.0,
        "tokens_per_s_per_gpu": 2048.0,
        "mean_of": 1,
        "total_weights": 4096.0,
    }
    assert answer.json["summary"] == dict(zip(SUMMARY_KEYS, ["last", 1, 2.5, None, 320.0, None], strict=True))


STEADY_KEYS = [
    *("first", "last", "count", "step_time_s", "step_time_std_s", "drift", "spikes", "spike_share", "spike_period")
]


def test_a_log_without_the_window_has_its_steady_state_with_a_label(parse: Llmb, tmp_path: Path) -> None:
    log = write(tmp_path / "short.log", [40.0, *[2.0] * 12, 3.0, 2.0])
    document = parse(log, "--window", "35:44", "--json").json

    assert document["summary"]["step_time_s"] is None
    assert list(document["steady_state"]) == STEADY_KEYS
    assert (document["steady_state"]["first"], document["steady_state"]["step_time_s"]) == (1, 2.0)
    assert document["steady_state"]["spikes"] == [{"step": 13, "time_s": 3.0}]
    shown = parse(log, "--window", "35:44").out
    assert "steps 35 to 44 not found, the log has steps 0 to 14; see --window\n" in shown
    cost = "1 spike at step 13 cost 3.4 % of the time, drift +0.0 %"
    assert f"steady state (not the window): 2.000 s, steps 1 to 14; {cost}\n" in shown


def test_a_log_of_few_steps_has_no_steady_state(parse: Llmb, log: Path) -> None:
    assert parse(log, "--json").json["steady_state"] is None
    assert "steady state" not in parse(log).out


def test_nan_is_null_and_makes_the_log_nan(parse: Llmb, tmp_path: Path) -> None:
    log = write(tmp_path / "nan.log", [2.0], end=line(1, loss=float("nan")))
    answer = parse(log, "--json")

    assert (answer.status, answer.json["status"]) == (0, "nan")
    assert [step["loss"] for step in answer.json["steps"]] == [8.0, None]


@pytest.mark.parametrize(
    ("window", "shown", "count", "mean"),
    [("last", "last", 1, 2.5), ("2:4", [2, 4], 3, 6.5 / 3), ("3:44", [3, 44], 2, 2.25), ("70:80", [70, 80], 0, None)],
)
def test_the_mean_is_over_the_window(
    parse: Llmb, log: Path, window: str, shown: object, count: int, mean: float | None
) -> None:
    summary = parse(log, "--window", window, "--json").json["summary"]

    assert (summary["window"], summary["count"]) == (shown, count)
    assert summary["step_time_s"] == (mean if mean is None else pytest.approx(mean))


@pytest.mark.parametrize("window", ["5:2", "first", "3", "3:", "a:b", "-1:4", f"3:{'9' * 5000}"])
def test_an_invalid_window_is_rejected(parse: Llmb, log: Path, window: str) -> None:
    answer = parse(log, f"--window={window}")

    assert (answer.status, answer.out) == (2, "")
    assert "expected last, or FIRST:LAST such as 35:44" in " ".join(answer.err.split())


@pytest.mark.parametrize(("steps", "status"), [(4, "complete"), (5, "complete"), (6, "incomplete")])
def test_the_option_steps_decides_when_a_log_is_complete(parse: Llmb, log: Path, steps: int, status: str) -> None:
    answer = parse(log, "--steps", steps, "--json")

    assert (answer.status, answer.json["status"]) == (0, status)


def test_steps_of_a_partial_log_count_from_the_first_step_of_the_framework(parse: Llmb, tmp_path: Path) -> None:
    log = write(tmp_path / "tail.log", [2.0], first=49)

    assert parse(log, "--steps", 50, "--json").json["status"] == "complete"
    assert parse(log, "--steps", 51, "--json").json["status"] == "incomplete"


def test_the_log_of_a_failed_run_has_a_cause(parse: Llmb, tmp_path: Path) -> None:
    end = "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.95GiB\n"
    log = write(tmp_path / "broken.log", [2.0, 2.0], end=end)
    failure = parse(log, "--steps", 50, "--json").json["failure"]

    assert list(failure) == ["cause", "origin", "evidence", "line", "rank", "host", "remedy"]
    assert (failure["evidence"], failure["line"]) == (end.strip(), 3)
    assert failure["cause"] in parse(log, "--steps", 50).out


def test_as_csv_each_step_is_a_line(parse: Llmb, log: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(parse(log, "--csv").out)))

    assert list(rows[0])[:5] == STEP_KEYS
    assert [(int(row["step"]), float(row["time_s"])) for row in rows] == list(enumerate([40.0, 0.5, 2.0, 2.0, 2.5]))
    assert rows[0]["total_weights"] == "4096.0"


def test_as_a_table_each_step_is_a_line_and_the_mean_is_the_last(parse: Llmb, log: Path) -> None:
    heading, *steps, mean = parse(log, "--window", "2:4").out.splitlines()
    assert heading.split()[:3] == ["step", "time", "s"]
    assert [each.split()[0] for each in steps] == ["0", "1", "2", "3", "4"]
    assert mean.startswith("complete, 5 steps (total unknown), steps 2 to 4: 2.167 s (standard deviation")
    assert "incomplete, 5 of 8 steps, last step: " in parse(log, "--window", "last", "--steps", "8").out
    last_line = write(log, [2.0], first=299)
    assert "complete, 1 of 300 steps printed, last step: " in parse(last_line, "--window", "last", "--steps", "300").out


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ("3:44", "steps 3 to 44, 2 of them measured: 2.25 s"),
        ("70:70", "step 70 not found, the log has steps 0 to 4"),
        ("70:80", "steps 70 to 80 not found, the log has steps 0 to 4; see --window"),
    ],
)
def test_an_incomplete_window_is_described(parse: Llmb, log: Path, window: str, text: str) -> None:
    assert text in parse(log, "--window", window).out.splitlines()[-1]


@pytest.mark.parametrize(
    ("times", "window", "note"),
    [
        ([0.25] * 9 + [15.75], "last", "the last step took 63 times the median of all steps (0.25 s)"),
        ([15.75] + [0.25] * 9, "0:0", "step 0 took 63 times the median"),
        ([2.0] * 9 + [0.5], "last", "the last step took 0.25 times the median"),
        ([2.0] * 9 + [2.5], "last", None),
        ([0.25] * 9 + [15.75], "5:9", None),  # a mean, with its standard deviation
        ([40.0, 2.0, 20.0], "last", None),  # too few for a median
    ],
)
def test_a_mean_of_one_unusual_step_needs_a_note(
    parse: Llmb, tmp_path: Path, times: list[float], window: str, note: str | None
) -> None:
    end = parse(write(tmp_path / "run.log", times), "--window", window).out.splitlines()[-1]

    assert end.startswith(f"note: {note}") if note else "median" not in end


@pytest.mark.parametrize(
    ("window", "text"),
    [("last", "the last step has"), ("1:1", "step 1 has"), ("1:3", "steps 1 to 3 have")],
)
@pytest.mark.parametrize("time_s", [float("nan"), 1e-9, -2.0])  # the second is printed as 0.000
def test_a_window_without_times_is_described(
    parse: Llmb, tmp_path: Path, window: str, text: str, time_s: float
) -> None:
    log = write(tmp_path / "run.log", [2.0], end=line(1, time_s=time_s))

    assert parse(log, "--window", window).out.splitlines()[-1] == f"complete, 2 steps (total unknown), {text} no time"


def test_one_form_of_output_at_a_time(parse: Llmb, log: Path) -> None:
    assert (parse(log, "--json", "--csv").status, parse(log, "--json", "--csv").json["errors"] != []) == (2, True)


def test_the_library_returns_what_the_command_prints(parse: Llmb, log: Path) -> None:
    import llmb as library

    found = library.parse([log], framework="maxtext", window=(1, 3), steps=5)
    assert found.as_dict() == parse(log, "--window", "1:3", "--steps", "5", "--json").json
    assert (found.status, found.summary.count) == ("complete", 3)


def test_the_library_returns_the_steps_and_the_reason_of_a_failure(log: Path) -> None:
    import llmb as library

    good, short = (library.parse(log, framework="maxtext", steps=steps) for steps in (5, 50))
    assert [(step.step, step.time_s) for step in good.steps] == list(enumerate([40.0, 0.5, 2.0, 2.0, 2.5]))
    assert (good.reason, short.reason) == (None, "5 of 50 steps")
    log.write_bytes(b"")
    assert library.parse(log, framework="maxtext").reason == "is empty"


def test_the_logs_of_several_ranks_are_one_run_to_the_library(tmp_path: Path) -> None:
    import llmb as library

    ranks = [write(tmp_path / f"{rank}.log", [2.0 + rank / 10] * 5) for rank in (9, 10)]
    times = [[step.time_s for step in library.parse(each, framework="maxtext").steps] for each in (ranks, ranks[::-1])]
    assert times == [[2.9] * 5] * 2
    for read in (library.recognise_framework, lambda logs: library.parse(logs, framework="maxtext")):
        with pytest.raises(library.LogError, match="no log is named"):
            read([])


# Several logs, and directories


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "experiments"
    write(folder / "a" / "log.out", [2.0, 2.0])
    write(folder / "b" / "log.out", [3.0, 3.0], end=line(2, loss=float("nan")))
    (folder / "notes.txt").write_text("completed step by step\n")
    (folder / "empty.log").touch()
    (folder / "a" / "image.sqsh").write_bytes(os.urandom(100_000))
    return folder


def test_of_a_directory_the_logs_of_the_framework_are_parsed(parse: Llmb, folder: Path) -> None:
    answer = parse(folder, "--json")

    assert (answer.status, list(answer.json)) == (0, ["logs", "summary", "passed_over"])
    assert [log["path"] for log in answer.json["logs"]] == [str(folder / name / "log.out") for name in "ab"]
    assert list(answer.json["logs"][0])[:3] == ["experiment", "path", "framework"]
    assert [(log["experiment"], log["status"]) for log in answer.json["logs"]] == [("log", "complete"), ("log", "nan")]
    assert answer.json["summary"] == {"succeeded": 1, "failed": 1}


def test_several_logs_are_parsed_each_on_its_own(parse: Llmb, folder: Path) -> None:
    answer = parse(folder / "a" / "log.out", folder / "empty.log", "--json")

    assert [log["status"] for log in answer.json["logs"]] == ["complete", "no_data"]
    assert [log["reason"] for log in answer.json["logs"]] == [None, "is empty"]
    assert answer.json["summary"] == {"succeeded": 1, "failed": 1}


def test_as_csv_each_log_is_a_line(parse: Llmb, folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(parse(folder, "--csv").out)))

    assert list(rows[0]) == ["experiment", "status", *SUMMARY_KEYS[1:], "path"]
    assert [(row["status"], row["step_time_s"]) for row in rows] == [("complete", "2.0"), ("nan", "2.0")]


def test_as_a_table_each_log_is_a_line(parse: Llmb, folder: Path) -> None:
    _, *rows, counts = parse(folder).out.splitlines()

    assert [row.split() for row in rows] == [
        ["a/log", "Success", "2000.000", "-", "400.00", "-"],
        ["b/log", "Failed", "(last", "step", "2)", "the", "loss", "was", "NaN"],
    ]
    assert counts == "1 succeeded, 1 failed; mean of the last step"


def test_a_run_that_ends_before_the_end_of_the_window_has_failed(parse: Llmb, folder: Path) -> None:
    answer = parse(folder / "a", "--window", "0:2")

    row = " ".join(answer.out.splitlines()[1].split())
    assert row == "log Failed (last step 1) steps 0 to 2 are not all measured"
    assert parse(folder / "a", "--window", "0:2", "--json").json["summary"] == {"succeeded": 0, "failed": 1}
    assert "no step 7\n" in parse(folder / "a", "--window", "7:7").out


@pytest.mark.parametrize("hole", [b"\0", bytes(30_000)], ids=["one byte", "a hole"])
def test_in_a_directory_a_log_with_nul_bytes_is_read(parse: Llmb, log: Path, hole: bytes) -> None:
    log.write_bytes(b"begin \xe2\x96\x88" + hole + b"\n" + log.read_bytes())

    assert parse(log.parent, "--json").json["summary"] == {"succeeded": 1, "failed": 0}


def test_a_log_without_any_step_time_is_no_success(parse: Llmb, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(
        "".join(f"completed step: {step}, TFLOP/s/device: 400.000\n" for step in range(9))
    )
    [log] = parse(tmp_path, "--json").json["logs"]

    assert (log["status"], log["reason"]) == ("complete", "no step has a time")
    assert " Failed " in parse(tmp_path).out


def test_in_a_directory_logs_with_a_failure_count_and_other_files_are_listed_as_passed_over(
    parse: Llmb, folder: Path
) -> None:
    (folder / "broken.log").write_text(f"begin\n{OUT_OF_MEMORY}\n")
    (folder / "result.json").write_text(OUT_OF_MEMORY)  # has the text of the log
    (folder / "checkpoint.log").write_bytes(bytes(1000))
    for place in range(300):
        (folder / f"other-{place:03}.out").write_text("nothing\n")
    answer, document = parse(folder), parse(folder, "--json").json

    assert (answer.status, answer.out.splitlines()[-1]) == (0, "1 succeeded, 2 failed; mean of the last step")
    rows = [" ".join(row.split()) for row in answer.out.splitlines()]
    assert "broken Failed (no step) the accelerator is out of memory" in rows
    other = "no maxtext steps found; check --framework"
    assert answer.err.splitlines() == [
        f"llmb: {folder}: passed over 1 file (checkpoint.log): is binary, and not a log of maxtext",
        f"llmb: {folder}: passed over 1 file (empty.log): is empty",
        f"llmb: {folder}: passed over 301 files (notes.txt, other-000.out, other-001.out and 298 more): {other}",
    ]
    assert len(document["passed_over"]) == 303
    assert {"path": str(folder / "empty.log"), "reason": "is empty"} in document["passed_over"]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/one/logs/train.0.log", "x/two/logs/train.0.log"], ["one/train.0", "two/train.0"]),
        (["x/train.log", "x/deep/er/train.log", "other.log"], ["train", "deep/er/train", "other"]),
        (["train.log", "train.out"], ["train.log", "train.out"]),
        (["a/train.log", "b/train.log", "b/train.out"], ["a/train.log", "b/train.log", "b/train.out"]),
    ],
)
def test_logs_of_one_name_are_shown_with_the_differing_part_of_their_paths(
    parse: Llmb, tmp_path: Path, paths: list[str], names: list[str]
) -> None:
    answer = parse(*(write(tmp_path / path, [2.0]) for path in paths))

    assert [row.split()[0] for row in answer.out.splitlines()[1:-1]] == names


def test_logs_without_steps_are_listed_and_the_exit_code_is_1(parse: Llmb, folder: Path) -> None:
    empty, nothing = folder / "empty.log", folder / "nothing"
    nothing.mkdir()
    answer = parse(folder / "a" / "log.out", empty, nothing)

    assert (answer.status, answer.out.splitlines()[-1]) == (1, "1 succeeded, 1 failed; mean of the last step")
    lines = [f"llmb: {empty}: is empty", f"llmb: {nothing}: no file with maxtext steps found; check --framework"]
    assert answer.err.splitlines() == lines


@pytest.mark.parametrize(("module", "ending"), [(gzip, "gz"), (bz2, "bz2"), (lzma, "xz")])
def test_a_compressed_log_gives_the_same_result(parse: Llmb, tmp_path: Path, module: Any, ending: str) -> None:
    log = write(tmp_path / "logs" / "run.log", [2.0, 2.0], end=f"{OUT_OF_MEMORY}\n")
    plain = parse(log, "--json").json
    packed = log.with_name(f"run.log.{ending}")
    packed.write_bytes(module.compress(log.read_bytes()))
    log.unlink()

    assert parse(packed, "--json").json == plain
    assert plain["failure"]["line"] == 3
    assert [each["experiment"] for each in parse(tmp_path, "--json").json["logs"]] == ["run"]
    packed.write_bytes(packed.read_bytes()[:-4])  # a copy that was cut off
    answer = parse(packed)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"llmb: {packed}: cannot be unpacked: ")


def test_a_full_disk_while_unpacking_a_log_is_one_line_and_exit_2(
    parse: Llmb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "run.log.gz"
    packed.write_bytes(gzip.compress(line(0).encode()))
    monkeypatch.setattr(tempfile, "tempdir", "/dev/full")

    assert parse(packed) == Answer(2, "", f"llmb: {packed}: cannot be written into /dev/full: Not a directory\n")


def test_without_a_log_the_framework_needs_a_log_directory(parse: Llmb) -> None:
    answer = parse()

    assert answer.status == 2
    assert "maxtext has no log directory of its own" in answer.err


# Bad input: one clear line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (bytes(range(256)) * 1000, "is binary, and not a log of maxtext"),
        (b"x" * 3_000_000, "no maxtext steps found; check --framework"),
        (b"\x28\xb5\x2f\xfd\0", "is compressed by zstd; unpack it first"),
        (gzip.compress(b""), "is empty"),
    ],
    ids=["empty", "binary", "one line", "compressed", "empty once unpacked"],
)
def test_a_log_without_a_step_is_one_line_and_exit_1(parse: Llmb, tmp_path: Path, content: bytes, message: str) -> None:
    log = tmp_path / "bad.log"
    log.write_bytes(content)
    answer = parse(log)

    assert (answer.status, answer.out) == (1, "")
    assert [*map(str.strip, answer.err.splitlines())] == [answer.err.strip()]
    assert answer.err.startswith(f"llmb: {log}: ")
    assert message in answer.err
    document = parse(log, "--json").json
    assert (document["status"], document["steps"], document["summary"]["step_time_s"]) == ("no_data", [], None)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("AssertionError: Rank 7/6/5/4: found NaN in local forward loss calculation", "the loss became NaN"),
        ("Rank 13: found NaN in local grad norm in backward pass before", "the gradient became NaN"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.", "the accelerator is out of memory"),
    ],
)
def test_a_run_that_failed_before_its_first_step_has_a_cause(
    parse: Llmb, tmp_path: Path, text: str, cause: str
) -> None:
    log = tmp_path / "broken.log"
    log.write_text(f"begin\n{text}\n")
    answer = parse(log)

    message = f"llmb: {log}: no maxtext steps found; failed before the first step, or is the log of another framework\n"
    assert (answer.status, answer.err) == (1, message)
    rows = dict(line.split("  ", 1) for line in answer.out.splitlines())
    assert rows["cause"].strip() == cause
    assert rows["log"].strip() == f"{text} (line 2)"
    document = parse(log, "--json").json
    assert (document["status"], document["failure"]["cause"], document["failure"]["line"]) == ("no_data", cause, 2)


def test_a_directory_without_a_log_is_one_line_and_exit_1(parse: Llmb, tmp_path: Path) -> None:
    answer = parse(tmp_path)

    assert (answer.status, answer.out) == (1, "")
    assert answer.err == f"llmb: {tmp_path}: no file with maxtext steps found; check --framework\n"
    assert parse(tmp_path, "--json").json == {"logs": [], "summary": {"succeeded": 0, "failed": 0}}


def test_a_missing_log_is_one_line_and_exit_2(parse: Llmb, tmp_path: Path, log: Path) -> None:
    missing = tmp_path / "missing.log"

    assert parse(missing) == Answer(2, "", f"llmb: {missing}: cannot be read: No such file or directory\n")
    answer = parse(log, missing, "--json")
    assert answer.status == 2
    assert [fault["file"] for fault in answer.json["errors"]] == [str(missing)]


def test_a_log_without_read_permission_is_one_line_and_exit_2(
    parse: Llmb, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = open

    def refuse(path: Any, *arguments: Any, **more: Any) -> Any:
        if path == log:
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, *arguments, **more)

    monkeypatch.setattr("builtins.open", refuse)  # file modes do not stop root
    assert parse(log) == Answer(2, "", f"llmb: {log}: cannot be read: Permission denied\n")


def test_an_unknown_framework_is_one_line_and_exit_2(llmb: Llmb, log: Path) -> None:
    answer = llmb("parse", log, "--framework", "maxtex")
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "did you mean 'maxtext'?" in answer.err


def test_a_log_can_be_piped_in(log: Path) -> None:
    words = [sys.executable, "-m", "llmb", "parse", "-", "--framework", "maxtext", "--csv"]
    with log.open("rb") as given, subprocess.Popen(["cat"], stdin=given, stdout=subprocess.PIPE) as pipe:
        done = subprocess.run(words, stdin=pipe.stdout, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 6)
