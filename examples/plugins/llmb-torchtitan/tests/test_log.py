from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

import llmb
from llmb import LogParser, Notice, Step
from llmb_torchtitan.log import TorchTitanLog

LOGS = Path(__file__).parent / "logs"

VERSIONS = {
    "April 2024": "[rank0]:2024-04-12 10:11:12,345 - root - INFO - \x1b[36mstep: 10  \x1b[32mloss:  8.1234  "
    "\x1b[33mmemory: 33.43GiB(35.19%)  \x1b[34mwps: 6,093  \x1b[35mmfu: 35.63%\x1b[39m",
    "December 2024": "[rank0]:2024-12-26 10:11:12,345 - root - INFO - \x1b[36mstep: 10  \x1b[32mloss:  8.1234  "
    "\x1b[33mmemory: 76.97GiB(80.99%)  \x1b[34mtps: 6,667  \x1b[35mmfu: 39.02%\x1b[39m",
    "0.1.0": "[titan] 2025-06-18 10:11:12,345 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.1234  "
    "\x1b[33mmemory: 76.97GiB(80.99%)  \x1b[34mtps: 6,667  \x1b[36mtflops: 386.10  \x1b[35mmfu: 39.04%\x1b[39m",
    "0.2.0": "[titan] 2025-10-18 10:11:12,345 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.1234  "
    "\x1b[38;2;180;60;0mgrad_norm:  3.4567  \x1b[38;2;54;234;195mmemory: 76.97GiB(80.99%)  \x1b[34mtps: 6,667  "
    "\x1b[36mtflops: 386.10  \x1b[35mmfu: 39.04%\x1b[39m",
    "0.2.2 without colours": "[titan] 2026-02-21 10:11:12,345 - root - INFO - step: 10  loss:  8.12340  "
    "grad_norm:  3.4567  memory: 76.97GiB(80.99%)  tps: 6,667  tflops: 386.10  mfu: 39.04%",
    "0.2.2 under torchrun": "[rank0]:[titan] 2026-02-21 10:11:12,345 - root - INFO - step: 10  loss:  8.12340  "
    "grad_norm:  3.4567  memory: 76.97GiB(80.99%)  tps: 6,667  tflops: 386.10  mfu: 39.04%",
    "DGX Cloud benchmarking": "[titan] 2026-08-20 10:11:12,345 - root - INFO - step: 10  loss:  8.12340  "
    "iteration_time:  2.4570s grad_norm:  3.4567  memory: 76.97GiB(80.99%)  tps: 6,667  tflops: 386.10  mfu: 39.04%",
    "2026, with Float8": "[titan] 2026-08-20 10:11:12,345 - root - INFO - step: 10  loss:  8.12340  "
    "grad_norm:  3.4567  memory: 76.97GiB(80.99%)  tps: 6,667  tflops: 386.10  mfu: N/A",
}
LINE = VERSIONS["0.2.0"]
VALIDATION = (
    "[titan] 2025-10-18 10:11:12,345 - root - INFO - \x1b[33mvalidate step: 10  \x1b[32mloss:  8.1111  "
    "\x1b[38;2;54;234;195mmemory: 76.97GiB(80.99%)  \x1b[34mtps: 12,345\x1b[39m"
)
START = (
    "[titan] 2025-10-18 10:11:02,345 - root - INFO - Trainer is initialized with local batch size 2, global batch "
    "size 16, gradient accumulation steps 1, sequence length 8192, total steps {} (warmup 200)"
)
MESH = (
    "[titan] 2025-10-18 10:11:00,345 - root - INFO - Building device mesh with parallelism: pp={}, dp_replicate=1, "
    "dp_shard=8, cp={}, tp={}, ep=1, etp=1"
)
END = "[titan] 2025-10-18 10:12:12,345 - root - INFO - Training completed"


def read(*lines: str, parser: LogParser | None = None, cut: int = 1 << 20, end: str = "\n") -> list[Step | Notice]:
    parser = parser or TorchTitanLog()
    data = "\n".join(lines).encode() + end.encode()
    found = [each for begin in range(0, len(data), cut) for each in parser.feed(data[begin : begin + cut])]
    return [*found, *parser.close()]


def steps(found: Sequence[Step | Notice]) -> list[Step]:
    return [each for each in found if isinstance(each, Step)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("cut", [1, 1 << 20])
def test_a_step_line_of_every_version(version: str, cut: int) -> None:
    [step] = steps(read(VERSIONS[version], cut=cut))
    assert (step.step, step.loss) == (10, 8.1234)
    assert step.tokens_per_s_per_gpu == (6093 if version == "April 2024" else 6667)
    assert step.tflops_per_gpu == (386.1 if "tflops" in VERSIONS[version] else None)
    assert step.other_values.get("grad_norm") == (3.4567 if "grad_norm" in VERSIONS[version] else None)
    assert step.other_values["memory_gib"] in (33.43, 76.97)
    assert step.time_s == (2.457 if version == "DGX Cloud benchmarking" else None)


def test_the_step_time_follows_from_the_tokens_per_gpu() -> None:
    first = LINE.replace("step: 10", "step:  1")
    found = steps(read(first, LINE, LINE.replace("10", "20"), parser=TorchTitanLog(tokens_per_step=2 * 8192)))
    assert [step.time_s for step in found] == [2 * 8192 / 6667] * 3
    series = llmb.StepSeries(first_step=1)
    series.add(found)
    assert [step.mean_of for step in series.steps] == [1, 9, 10]


def test_the_fork_divides_the_time_of_the_first_step_by_the_interval_of_its_lines() -> None:
    line = VERSIONS["DGX Cloud benchmarking"]
    found = steps(read(line.replace("step: 10", "step:  1"), line, parser=TorchTitanLog(tokens_per_step=2 * 8192)))
    assert [step.time_s for step in found] == [2 * 8192 / 6667, 2.457]


@pytest.mark.parametrize(("parallelism", "tokens_per_gpu"), [((1, 1, 1), 2 * 8192), ((2, 4, 8), 2 * 8192 / 64)])
@pytest.mark.parametrize("of_run", [None, 1.0])
def test_the_step_time_follows_from_the_batch_and_the_parallelism_that_the_log_states(
    parallelism: tuple[int, int, int], tokens_per_gpu: float, of_run: float | None
) -> None:
    mesh = MESH.format(*parallelism)
    [step] = steps(read(mesh, START.format(100), LINE, parser=TorchTitanLog(tokens_per_step=of_run)))
    assert step.time_s == tokens_per_gpu / 6667


def test_a_log_without_batch_or_parallelism_needs_those_of_the_run() -> None:
    needed = Notice(kind="run unknown", text="step times")
    assert needed in read(START.format(100), LINE)
    assert needed in read(MESH.format(1, 1, 1), LINE)
    assert needed in read(MESH.format(0, 1, 1), START.format(100), LINE)
    assert needed not in read(MESH.format(1, 1, 1), START.format(100), LINE)
    assert needed not in read(VERSIONS["DGX Cloud benchmarking"])


def test_a_grade_uses_the_step_time_of_the_tokens_and_not_of_the_rounded_tflops(tmp_path: Path) -> None:
    """Without the line of the parallelism, the parser needs the batch of the graded run."""
    lines = (LOGS / "torchtitan-0.2.2-cpu-rank1of2.log").read_text().splitlines(keepends=True)
    (tmp_path / "run.log").write_text("".join(line for line in lines if "device mesh" not in line))
    grade = llmb.grade(tmp_path / "run.log", recipe="torchtitan/deepseek-v3-tiny", gpu_type="cpu", dtype="fp32", gpus=2)
    assert grade.metrics
    assert grade.metrics.step_time_s == pytest.approx(256 * sum(1 / rate for rate in (57, 53, 68, 76, 91)) / 5)


@pytest.mark.parametrize("labels", [("", ""), ("[rank0]:", "[rank1]:"), ("0: ", "1: ")])
def test_ranks_of_one_log_are_means_over_the_same_steps(labels: tuple[str, str]) -> None:
    printed = [(0, 1), (1, 1), (0, 10), (1, 10), (0, 20), (1, 20)]
    lines = [labels[rank] + LINE.replace("step: 10", f"step: {number:2}") for rank, number in printed]
    series = llmb.StepSeries(first_step=1)
    series.add(read(*lines))
    assert [(step.step, step.mean_of) for step in series.steps] == [(1, 1), (10, 9), (20, 10)]


def test_ranks_before_the_last_pipeline_stage_print_no_loss() -> None:
    [step] = steps(read(LINE.replace("loss:  8.1234", "loss: -1.00000")))
    assert (step.loss, step.tflops_per_gpu) == (None, 386.1)


def test_a_real_failure_without_deepep_has_a_remedy_that_torchtitan_knows() -> None:
    log = llmb.parse(LOGS / "torchtitan-0.2.2-cpu-no-deepep.log", framework="torchtitan")
    assert log.failure is not None
    assert log.failure.cause == "the Python environment has no DeepEP"
    assert "expert_parallel_comm_backend" in log.failure.remedy


def test_both_ranks_of_a_real_run_print_the_same_steps() -> None:
    ranks = [llmb.parse(LOGS / f"torchtitan-0.2.2-cpu-rank{rank}of2.log", framework="torchtitan") for rank in (0, 1)]
    first, second = ([(step.step, step.loss) for step in rank.steps] for rank in ranks)
    assert [number for number, _ in first] == [*range(1, 11)]
    assert first == second


def test_a_validation_is_no_step() -> None:
    assert [step.loss for step in steps(read(LINE, VALIDATION))] == [8.1234]


def test_a_line_that_is_cut_off_yields_its_complete_values() -> None:
    cut, _, _ = LINE.partition("9.04%")
    [step] = steps(read(cut, end=""))
    assert step.tflops_per_gpu == 386.1
    assert "mfu_percent" not in step.other_values


def test_a_loss_that_is_nan_is_reported() -> None:
    assert Notice(kind="nan", text="the loss of step 10 is NaN") in read(LINE.replace("8.1234", "   nan"))


@pytest.mark.parametrize(("steps_to_run", "totals"), [(100, [100, 10]), (15, [15, 10])])
def test_the_total_is_that_of_the_start_and_at_the_end_the_last_printed_step(
    steps_to_run: int, totals: list[int]
) -> None:
    found = read(START.format(steps_to_run), LINE, END)
    assert [each.value for each in found if isinstance(each, Notice) and each.kind == "total steps"] == totals
    assert Notice(kind="finished") in found


@pytest.mark.parametrize(
    "line", ["step: 10 tps: , mfu: 3%", "step: nan tps: 1 mfu: 3%", f"step: {10**23} tps: 1 mfu: 3%"]
)
def test_a_line_with_an_invalid_number_is_no_step(line: str) -> None:
    assert read(line) == []


def test_a_garbled_log_raises_no_error() -> None:
    log, dice = "\n".join((START.format(100), *VERSIONS.values(), END)), random.Random(1)
    for _ in range(250):
        place, elsewhere = dice.randrange(len(log)), dice.randrange(len(log))
        piece = dice.choice((".", ",", "-", ": ", "nan", "9" * 23, log[elsewhere : elsewhere + dice.randint(1, 60)]))
        assert all(isinstance(item, Step | Notice) for item in read(log[:place] + piece + log[place:]))
