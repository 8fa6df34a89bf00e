"""Existing NeMo logs: they have the values in their index, for all line ends, labels and block sizes."""

from __future__ import annotations

import csv
import functools
import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts.garbled import cut

from llmb import Notice, Step
from llmb.analysis.measuring_window import summarise
from llmb.logs.steps.step_series import StepSeries
from llmb.parsing.parse_log import LogReader
from llmb.plugins.registry import PluginRegistry
from llmb_nemo_launcher.log import NeMoLog

SHARED = Path(__file__).parents[4] / "shared" / "logs"
REAL = sorted(SHARED.glob("nemo/*.log"))
SOME = [log for log in REAL if log.name[:2] in ("01", "13", "21", "37", "43")]
SOME_THEN_ALL = [pytest.param(log, marks=() if log in SOME else pytest.mark.slow, id=log.stem) for log in REAL]
MIB = 1 << 20

# first and last step, its time; status; further: mean of the last ten, steps of the mean, TFLOP/s, tokens/s
FIGURES: dict[str, dict[str, Any]] = {
    "01": {"steps": (1, 20), "time_s": 4.679, "status": "complete", "mean": 4.699, "mean_of": 5},
    "03": {"steps": (1, 20), "time_s": 24.350, "status": "complete", "mean": 24.343, "mean_of": 5},
    "05": {"steps": (1, 20), "time_s": 6.426, "status": "complete", "mean": 6.428, "mean_of": 5},
    "07": {"steps": (1, 20), "time_s": 11.116, "status": "complete", "mean": 11.115, "mean_of": 5},
    "09": {"steps": (1, 20), "time_s": 2.022, "status": "complete", "mean": 2.026, "mean_of": 5},
    "11": {"steps": (1, 20), "time_s": 13.448, "status": "complete", "mean": 13.440, "mean_of": 5},
    "13": {"steps": (0, 19), "time_s": 7.592, "status": "complete", "mean_of": 1},
    "15": {"steps": (0, 15), "time_s": 7.611, "status": "incomplete"},
    "17": {"steps": (0, 2), "time_s": 7.599, "status": "incomplete"},
    "19": {"steps": (0, 99), "time_s": 0.6147, "status": "complete"},
    "21": {"steps": (9, 100), "time_s": 0.128, "status": "complete"},
    "23": {"steps": (0, 499), "time_s": 0.1081, "status": "complete"},
    "25": {"steps": (0, 49), "time_s": 9.308, "status": "complete"},
    "27": {"steps": (0, 99), "time_s": 0.4345, "status": "complete"},
    "29": {"steps": (50, 50), "time_s": 5.90, "status": "complete"},
    "31": {"steps": (100, 100), "time_s": 11.20, "status": "complete"},
    "33": {"steps": (100, 100), "time_s": 3.13, "status": "complete"},
    "35": {"steps": (49, 49), "time_s": 2.693, "status": "complete"},
    "37": {"steps": (19, 48), "time_s": 46.81, "status": "incomplete"},
    "39": {"steps": (2000, 2000), "time_s": 1.900, "status": "incomplete"},
    "41": {"steps": (45, 49), "time_s": 6.06, "status": "incomplete", "tflops_per_gpu": 1253},
    "43": {"steps": (97, 99), "time_s": 12.21, "status": "complete", "tokens_per_s_per_gpu": 10730},
    "45": {"steps": (0, 2), "time_s": None, "status": "incomplete"},
    "47": {"steps": (7, 7), "time_s": 49.50, "status": "incomplete"},
}


def parse(*blocks: bytes, source: str = "") -> list[Step | Notice]:
    parser = NeMoLog()
    return [item for block in blocks for item in parser.feed(block, source)] + list(parser.close())


def last_run(*blocks: bytes) -> dict[int, str]:
    """Return the steps of the last run as text, because NaN does not equal itself, without their attempt."""
    found = [item for item in parse(*blocks) if isinstance(item, Step)]
    last = max(step.attempt for step in found)
    kept = {step.step: repr(attrs.evolve(step, attempt=0)) for step in found if step.attempt == last}
    return dict(sorted(kept.items()))


@functools.cache
def parsed_in_one_piece(log: Path) -> str:
    """Return what the parser finds in a log, as text."""
    return repr(parse(log.read_bytes()))


def labelled(data: bytes, label: str, ranks: int = 1, late: int = 0) -> bytes:
    """Return the log of several ranks in one file, each ``late`` lines behind the rank before."""
    lines = data.splitlines()
    turns = range(len(lines) + late * ranks)
    places = [(rank, turn - late * rank) for turn in turns for rank in range(ranks)]
    return b"".join(
        label.replace("N", str(rank)).encode() + lines[place] + b"\n"
        for rank, place in places
        if 0 <= place < len(lines)
    )


@pytest.mark.parametrize("log", REAL, ids=lambda path: path.stem)
def test_a_real_log_has_the_steps_in_its_index(log: Path) -> None:
    """Compare the number of steps. For the log with an unknown total, the index also counts 6 bars drawn again."""
    with (SHARED / "INDEX.tsv").open() as file:
        stated = {row["file"]: row["steps"] for row in csv.DictReader(file, delimiter="\t")}
    expected = int(stated[f"nemo/{log.name}"])

    assert len(last_run(log.read_bytes())) == (12 if log.name[:2] == "21" else expected)


@pytest.mark.parametrize("log", REAL, ids=lambda path: path.stem)
def test_a_real_log_has_these_values(log: Path) -> None:
    if (expected := FIGURES.get(log.name[:2])) is None:
        pytest.skip("its figures are not written down here")
    found = LogReader(framework="nemo_launcher", registry=PluginRegistry()).read([log])
    first, last = found.series.steps[0], found.series.steps[-1]

    assert (first.step, last.step) == expected["steps"]
    assert (last.time_s is None) == (expected["time_s"] is None)
    assert last.time_s is None or last.time_s == pytest.approx(expected["time_s"], abs=0.0005)
    assert found.summary.step_time_s == last.time_s
    assert found.status == expected["status"]
    if "mean" in expected:  # of values that the log states with two decimals
        assert summarise(found.series.steps, (11, 20)).step_time_s == pytest.approx(expected["mean"], abs=0.005)
    for name in expected.keys() & {"mean_of", "tflops_per_gpu", "tokens_per_s_per_gpu"}:
        assert getattr(last, name) == expected[name]


@pytest.mark.parametrize("log", SOME_THEN_ALL)
def test_line_ends_do_not_matter(log: Path) -> None:
    data = log.read_bytes()

    assert last_run(data.replace(b"\n", b"\r\n")) == last_run(data)
    assert last_run(data.replace(b"\n", b"\r")) == last_run(data)


@pytest.mark.parametrize("log", SOME_THEN_ALL)
@pytest.mark.parametrize("label", ["N: ", "  N: ", "[defaultN]:", "node-N: "])
def test_a_label_before_each_line_does_not_matter(log: Path, label: str) -> None:
    data = log.read_bytes()

    assert last_run(labelled(data, label)) == last_run(data)


@pytest.mark.parametrize("log", SOME_THEN_ALL)
@pytest.mark.parametrize(("ranks", "late"), [(2, 0), (2, 1), (3, 1), (3, 7)])
def test_labelled_ranks_in_one_log_give_the_steps_of_one(log: Path, ranks: int, late: int) -> None:
    data = log.read_bytes()

    assert last_run(labelled(data, "N: ", ranks, late)) == last_run(data)


@pytest.mark.parametrize("log", SOME_THEN_ALL)
def test_ranks_in_logs_of_their_own_give_the_steps_of_one(log: Path) -> None:
    data, parser = log.read_bytes(), NeMoLog()
    found = [item for rank in range(3) for item in parser.feed(data, f"rank{rank}.log")] + list(parser.close())
    numbers = {item.step for item in found if isinstance(item, Step)}

    assert len(numbers) == len(last_run(data))


@pytest.mark.parametrize("log", SOME, ids=lambda path: path.stem)
@given(places=st.lists(st.integers(min_value=0), max_size=30))
def test_how_the_bytes_are_cut_does_not_matter(log: Path, places: Sequence[int]) -> None:
    data = log.read_bytes()

    assert repr(parse(*cut(data, places))) == parsed_in_one_piece(log)


@pytest.mark.parametrize("log", SOME_THEN_ALL)
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_the_size_of_the_blocks_does_not_matter(log: Path, size: int) -> None:
    data = log.read_bytes()[-30_000:]

    assert repr(parse(*cut(data, range(0, len(data), size)))) == repr(parse(data))


def drawn(step: int, total: int = 50) -> bytes:
    """Return the three bars of a step, as on a terminal."""
    head = f"\rEpoch 0: :   2%|▏ | {step}/{total} [00:49<07:25"
    figures = "reduced_train_loss={0}.500, global_step={0}.000, train_step_timing in s=14.{0:02d}"
    stale = f"{head}, {figures.format(step - 1)}]" if step > 1 else ""
    return f"{head}]{stale}{head}, {figures.format(step)}]".encode()


def test_a_run_of_bars_is_complete_and_each_step_has_its_own_values() -> None:
    series = StepSeries()
    series.add(parse(*(drawn(step) for step in range(1, 51)), b"\n"))

    assert [(step.step, step.time_s) for step in series.steps] == [(step, 14 + step / 100) for step in range(1, 51)]
    assert (series.total_steps, series.count) == (50, 50)


def test_a_second_run_in_the_same_log_counts() -> None:
    data = b"".join(drawn(step) for step in [*range(1, 31), *range(1, 21)])
    found = last_run(data + b"\n")

    assert list(found) == list(range(1, 21))


def test_bars_without_any_line_end_cost_no_memory_and_hide_no_step() -> None:
    parser = NeMoLog()
    tracemalloc.start()
    try:
        found = [item for step in range(1, 2001) for item in parser.feed(drawn(step, 2000) + b"x" * 8000)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert [item.step for item in found if isinstance(item, Step)] == list(range(1, 2000))
    assert peak < 8 * MIB


def test_the_logs_of_the_original_scripts_are_found_below_their_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from llmb.cli.app import execute

    folder = tmp_path / "results" / "24.11" / "fp8" / "70b" / "64"
    folder.mkdir(parents=True)
    whole = b"".join(drawn(step) for step in range(1, 51)) + b"\n"
    (folder / "log-nemo_llama3.1_70b_64_1.out").write_bytes(whole)
    (folder / "log-nemo_llama3.1_70b_64_2.out").write_text("no step yet\n")
    (folder / "log-nemo_llama3.1_70b_64_1.err").write_bytes(whole)
    monkeypatch.chdir(tmp_path)
    execute(["parse", "--framework", "nemo_launcher", "--json"])
    found = json.loads(capsys.readouterr().out)

    assert {log["experiment"]: log["status"] for log in found["logs"]} == {
        "nemo_llama3.1_70b_64_1": "complete",
        "nemo_llama3.1_70b_64_2": "no_data",
    }
