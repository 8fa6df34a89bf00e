"""File names that look like logs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from llmb.parsing.file_filter import experiment, files_below, is_named_like_a_log
from llmb.values.errors import LogError
from llmb.values.log_file_names import LogFiles


@pytest.mark.parametrize(
    "name",
    [
        "run.log",
        "RUN.LOG",
        "slurm-123_4.out",
        "job.e4711",
        "train.0.0.log",
        "stdout",
        "train_log",
        "log.out.1",
        "run.log-20261121",
        "run.log.gz",
        "run.log.2.xz",
        "console.txt.zst",
    ],
)
def test_these_are_named_like_logs(name: str) -> None:
    assert is_named_like_a_log(Path("below") / name)


@pytest.mark.parametrize(
    "name",
    [
        "run.toml",
        "events.jsonl",
        "job.sh",
        "run.sbatch",
        "steps.csv",
        "image.sqsh",
        "profile.nsys-rep",
        "0_0.distcp",
        "events.out.tfevents.17.host",
        ".DS_Store",
        "lock",
        "job_id",
        "checkout",
        "shard-0.jsonl.gz",
        "code.tar.gz",
        "catalog.py",
    ],
)
def test_these_are_not(name: str) -> None:
    assert not is_named_like_a_log(Path("run.log") / name)


@pytest.mark.parametrize(("name", "known_as"), [("run-7.out.gz", "7"), ("other.log.xz", "other"), ("a.b.log", "a.b")])
def test_a_log_is_known_by_the_name_that_it_had_before_it_was_compressed(name: str, known_as: str) -> None:
    assert experiment(Path(name), LogFiles(experiment=r"^run-(\d+)\.out$")) == known_as


def test_a_folder_with_too_many_files_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb.parsing.file_filter.MAX_FILES", 2)
    for name in "abc":
        (tmp_path / name).touch()
    with pytest.raises(LogError, match="has more than 2 files; name the folder with the logs"):
        list(files_below(tmp_path, LogFiles()))
    (tmp_path / "c").unlink()
    assert [path.name for path in files_below(tmp_path, LogFiles())] == ["a", "b"]


def test_pipes_and_broken_links_are_no_logs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.log")
    (tmp_path / "b.log").symlink_to("nosuch")
    (tmp_path / "c.log").touch()
    assert [path.name for path in files_below(tmp_path, LogFiles())] == ["c.log"]


def test_a_folder_that_disappears_meanwhile_hides_no_other_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kept/log", "removed/log"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    scan = os.scandir

    def remove_first(folder: object) -> object:
        if os.path.basename(str(folder)) == "removed":
            shutil.rmtree(str(folder))
        return scan(folder)  # type: ignore[call-overload]  # as os.walk calls it

    monkeypatch.setattr(os, "scandir", remove_first)
    assert list(files_below(tmp_path, LogFiles())) == [tmp_path / "kept/log"]
