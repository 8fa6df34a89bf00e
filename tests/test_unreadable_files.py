"""Files that the user may not read: each is one line of the output, never a traceback, and hides no other file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from parts.forked import run_llmb

SPEC = '[workload]\nrecipe = "maxtext/llama2-tiny"\ngpu_type = "cpu"\ndtype = "fp32"\ngpus = 1\n'
LOCAL = '[target]\nscheduler = "local"\n'
RUN = "k3x9f-secret"


def llmb(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run llmb as a user who may read only what the modes of files permit. Root gives up the right to read all."""
    return run_llmb(arguments, without_rights=os.geteuid() == 0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create two records, a spec, a targets file and a log, all readable."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LLMB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("abcde-open", RUN):
        record = tmp_path / "home/runs" / name
        (record / "logs").mkdir(parents=True)
        (record / "run.toml").write_text(SPEC)
        (record / "events.jsonl").write_text('{"event": "planned"}\n')
        (record / "result.json").write_text("{}")
        (record / "logs/train.log").write_text("text\n")
    for name, text in (("spec.toml", SPEC + LOCAL), ("config/llmb/targets.toml", "[eos]\n"), ("logs/0.log", "a\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", ["", "result.json", "run.toml", "events.jsonl"])
def test_a_record_that_may_not_be_read_is_one_of_the_runs(folder: Path, name: str) -> None:
    (folder / "home/runs" / RUN / name).chmod(0)
    answer = llmb("runs", "--json")
    runs = {run["run_id"]: run for run in json.loads(answer.stdout)["runs"]}
    assert (answer.returncode, [*runs]) == (0, ["abcde-open", RUN])
    assert "cannot be read: Permission denied" in runs[RUN]["reason"]


@pytest.mark.parametrize(
    ("hidden", "arguments"),
    [
        (f"home/runs/{RUN}", ["show", RUN]),
        (f"home/runs/{RUN}/run.toml", ["show", RUN]),
        (f"home/runs/{RUN}/logs", ["logs", RUN]),
        (f"home/runs/{RUN}/logs/train.log", ["logs", RUN]),
        ("home/runs", ["runs"]),
        ("home", ["runs"]),
        ("home", ["attach"]),
        ("home", ["cancel", RUN]),
        ("spec.toml", ["validate", "FOLDER/spec.toml"]),
        ("config/llmb/targets.toml", ["validate", "FOLDER/spec.toml", "--target", "eos"]),
        ("config", ["validate", "FOLDER/spec.toml", "--target", "eos"]),
        ("config", ["doctor", "eos"]),
        ("logs/0.log", ["parse", "FOLDER/logs/0.log", "--framework", "maxtext"]),
        ("logs", ["parse", "FOLDER/logs", "--framework", "maxtext"]),
        ("logs", ["parse", "FOLDER/logs/0.log", "--framework", "maxtext"]),
        ("logs", ["parse", "FOLDER/logs", "FOLDER/logs/0.log", "--framework", "maxtext", "--json"]),
    ],
)
def test_an_unreadable_file_is_reported_in_one_line(folder: Path, hidden: str, arguments: list[str]) -> None:
    mode = (folder / hidden).stat().st_mode
    (folder / hidden).chmod(0)
    answer = llmb(*(each.replace("FOLDER", str(folder)) for each in arguments))
    (folder / hidden).chmod(mode)
    assert "Traceback" not in answer.stderr
    assert answer.returncode in (1, 2)
    assert "ermission denied" in answer.stdout + answer.stderr


@pytest.mark.parametrize(("mode", "named"), [(0, ""), (0o444, "/1.log")], ids=["not readable", "not searchable"])
def test_parse_names_a_folder_of_logs_without_rights(folder: Path, mode: int, named: str) -> None:
    below = folder / "logs/below"
    below.mkdir()
    (below / "1.log").write_text("a\n")
    below.chmod(mode)
    answer = llmb("parse", str(folder / "logs"), "--framework", "maxtext", "--json")
    below.chmod(0o755)
    faults = [(fault["file"], fault["message"]) for fault in json.loads(answer.stdout)["errors"]]
    assert (answer.returncode, faults) == (2, [(f"{below}{named}", "cannot be read: Permission denied")])


@pytest.mark.parametrize("name", ["result.json", "run.toml", "events.jsonl"])
def test_a_pipe_in_a_record_blocks_no_command(folder: Path, name: str) -> None:
    (folder / "home/runs" / RUN / name).unlink()
    os.mkfifo(folder / "home/runs" / RUN / name)
    answer = llmb("runs", "--json")
    runs = {run["run_id"]: run for run in json.loads(answer.stdout)["runs"]}
    assert (answer.returncode, [*runs]) == (0, ["abcde-open", RUN])
    assert f"{name} cannot be read: Not a regular file" in runs[RUN]["reason"]
    for command in (["show", RUN], ["report", RUN, "--csv", "-"]):
        answer = llmb(*command)
        assert "cannot be read: Not a regular file" in answer.stdout + answer.stderr
    for command in (["logs", RUN], ["cancel", RUN], ["attach", RUN], ["bundle", RUN, "-o", f"{folder}/bundle.tgz"]):
        answer = llmb(*command)
        assert "Traceback" not in answer.stderr
        assert name == "result.json" or "cannot be read: Not a regular file" in answer.stderr


def test_a_targets_file_that_is_a_pipe_is_reported(folder: Path) -> None:
    targets = folder / "config/llmb/targets.toml"
    targets.unlink()
    os.mkfifo(targets)
    answer = llmb("validate", str(folder / "spec.toml"), "--target", "eos")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.endswith(f"{targets}: the path is a pipe; expected a TOML file\n")


@pytest.mark.parametrize("name", [b"\xff.toml", b"x" * 5000], ids=["not UTF-8", "too long"])
def test_an_impossible_file_name_is_reported_in_one_line(name: bytes) -> None:
    for arguments in (["validate"], ["parse", "--framework", "maxtext"], ["show"]):
        answer = llmb(*arguments, os.fsdecode(name))
        assert (answer.returncode, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
