"""Records that lack a file or have a damaged one: bundles reject them, and ``show`` names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from parts.command_line import Llmb, command_line
from parts.finished_run import FinishedRun

import llmb as library


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def run_id(finished: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> str:
    return finished.restore(monkeypatch)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("result.json", None, "result.json is missing"),
        ("result.json", "x", "result.json is damaged: it is no longer the result of a run"),
        ("result.json", '{"metrics": "none"}', "damaged record: metrics"),
        ("steps.csv", None, "steps.csv is missing"),
    ],
)
def test_a_damaged_record_is_not_bundled(
    llmb: Llmb, run_id: str, tmp_path: Path, name: str, data: str | None, problem: str
) -> None:
    file = Path(library.find_run(run_id).directory) / name
    file.unlink() if data is None else file.write_text(data)
    answer = llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz")
    assert (answer.status, (tmp_path / "b.tar.gz").exists()) == (2, False)
    assert problem in " ".join(answer.err.split())


def test_show_names_the_missing_result_of_a_repeat(llmb: Llmb, toy: Any) -> None:
    workload = {"recipe": "toy/judged", "repeats": 2}
    first, second = library.run(library.load(toy.spec(workload=workload, framework={"journal": "/dev/null"})))
    (Path(first.directory) / "result.json").unlink()
    shown = " ".join(llmb("show", second.run_id).out.split())
    assert f"repeat 1 is left out: {first.directory}/result.json is missing" in shown
