"""Slow ranks in logs: one log per rank, labels of ranks, and the screens and keys that name them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

POINT = ("--recipe", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
SLOW = {5: 1.08}


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def step_lines(ranks: int = 16, steps: int = 40) -> Iterator[tuple[int, str]]:
    """Yield a line of each rank for each step. Rank 5 takes 8 % longer."""
    noise = random.Random(7)
    for step in range(steps):
        for rank in range(ranks):
            time_s = 7.0 * SLOW.get(rank, 1.0) * noise.gauss(1, 0.003)
            yield rank, f"completed step: {step}, seconds: {time_s:.3f}, TFLOP/s/device: 500.0, loss: 8.0\n"


def labelled(folder: Path) -> Path:
    log = folder / "job.out"
    log.write_text("".join(f"{rank:>2}: {line}" for rank, line in step_lines()))
    return log


def per_rank(folder: Path, name: str) -> Path:
    folder = folder / "logs"
    folder.mkdir()
    for rank, line in step_lines():
        with (folder / name.format(rank)).open("a") as file:
            file.write(line)
    return folder


def test_labels_of_ranks_name_the_slow_one(llmb: Llmb, tmp_path: Path) -> None:
    found = llmb("grade", labelled(tmp_path), *POINT, "--json").json["rank_times"]

    assert (found["ranks"], found["slow_hosts"]) == (16, [])
    [slow] = found["slow_ranks"]
    assert (slow["rank"], slow["host"]) == (5, None)
    assert slow["excess"] == pytest.approx(0.08, abs=0.005)
    assert slow["step_time_s"] == pytest.approx(7.56, abs=0.03)
    assert found["gain"] == pytest.approx(1 - 1 / 1.08, abs=0.01)


@pytest.mark.parametrize(
    ("name", "rank", "host"),
    [
        ("rank{}.log", 5, None),
        ("train.0.{}.log", 5, None),
        ("gpu{:02}.out", None, "gpu05"),
        ("log-n-{}.txt", None, "n-5"),
    ],
)
def test_one_log_per_rank_names_the_slow_one(
    llmb: Llmb, tmp_path: Path, name: str, rank: int | None, host: str | None
) -> None:
    found = llmb("grade", per_rank(tmp_path, name), *POINT, "--json").json["rank_times"]

    assert [(each["rank"], each["host"]) for each in found["slow_ranks"]] == [(rank, host)]
    assert [each["host"] for each in found["slow_hosts"]] == ([host] if host else [])


def test_the_screen_names_slow_ranks_and_the_gain(llmb: Llmb, tmp_path: Path) -> None:
    shown = llmb("grade", labelled(tmp_path), *POINT).out

    assert "slow ranks    rank 5 +8." in shown
    assert "% of the step time without them" in shown


def test_a_log_without_ranks_has_no_comparison(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(line for rank, line in step_lines() if rank == 0))

    assert llmb("grade", log, *POINT, "--json").json["rank_times"] is None


def test_a_slow_log_without_a_rank_or_host_in_its_name_is_an_unknown_rank(llmb: Llmb, tmp_path: Path) -> None:
    logs = [tmp_path / f"{name}.log" for name in "abcdefghijklmnop"]
    for rank, line in step_lines():
        with logs[rank].open("a") as file:
            file.write(line)
    assert "slow ranks    unknown rank +8." in llmb("grade", *logs, *POINT).out
