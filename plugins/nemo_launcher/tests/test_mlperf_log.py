"""Steps in the records of MLPerf, of each release: what they count, and what a record has."""

from __future__ import annotations

import json
from typing import Any

from llmb import Notice, Step
from llmb_nemo_launcher.log import NeMoLog


def record(key: str, value: object = None, **metadata: object) -> str:
    return ":::MLLOG " + json.dumps({"time_ms": 5, "key": key, "value": value, "metadata": metadata}) + "\n"


def stats(values: dict[str, float], **metadata: object) -> str:
    return record("tracked_stats", values, **metadata)


def steps(*lines: str) -> list[Step]:
    return [item for item in items(*lines) if isinstance(item, Step)]


def items(*lines: str) -> list[Step | Notice]:
    parser = NeMoLog()
    return [*parser.feed("".join(lines).encode()), *parser.close()]


def values_of(found: list[Step]) -> list[tuple[Any, ...]]:
    return [(step.step, step.time_s, step.loss, step.mean_of) for step in found]


GPT_3 = (record("global_batch_size", 4), record("max_sequence_length", 100), record("run_start"))


def test_steps_that_are_counted_in_tokens() -> None:
    log = [stats({"train_step_timing": 3.0 + n, "reduced_train_loss": 2.5}, step=400 * n) for n in (1, 2)]

    assert values_of(steps(*GPT_3, *log)) == [(1, 4.0, 2.5, 1), (2, 5.0, 2.5, 1)]


def test_a_rate_in_tokens() -> None:
    log = stats({"throughput": 200.0}, step=800)

    assert values_of(steps(*GPT_3, log)) == [(2, 2.0, None, 2)]


def test_the_mean_rate_of_a_run_replaces_no_step_time() -> None:
    log = stats({"train_step_timing in s": 4.5}, step=400), stats({"throughput": 50.0}, step=400)

    assert values_of(steps(*GPT_3, *log)) == [(1, 4.5, None, 1)]


def test_records_without_a_step_time_are_no_steps() -> None:
    log = (
        stats({"warmup_time": 90.0}, step=0),
        stats({"validation_step_time": 0.5}, step=3, samples_count=12),
        stats({"train_step_time": 1.5}, step=7.0, samples_count=32.0),
        stats({"validation_time": 8.0}, step=8),
    )

    assert values_of(steps(*GPT_3, *log)) == [(8, 1.5, None, 8)]


def test_blocks_that_count_their_own_samples() -> None:
    log = ""
    for begin in (0, 8, 10):
        samples = 32 if begin == 0 else 8
        log += record("block_start", samples_count=samples, step=begin)
        log += stats({"train_step_time": 2.5}, samples_count=samples)
        log += record("block_stop", samples_count=samples, step=begin + samples // 4)

    assert values_of(steps(*GPT_3, log)) == [(8, 2.5, None, 8), (10, 2.5, None, 2), (12, 2.5, None, 2)]


def test_blocks_that_are_counted_by_their_start() -> None:
    log = ""
    for begin, end in ((0, 32), (32, 40)):
        log += record("block_start", samples_count=begin)
        log += stats({"train_step_time": 2.5, "max_memory_usage": 80.0}, step=begin)
        log += record("block_stop", samples_count=begin) + record("eval_start", samples_count=end)

    assert values_of(steps(*GPT_3, log)) == [(8, 2.5, None, 8), (10, 2.5, None, 2)]


def test_blocks_that_end_where_the_next_one_starts() -> None:
    log = "".join(
        record("block_start", samples_count=4 * begin)
        + record("block_stop", samples_count=4 * begin)
        + stats({"throughput": 8.0, "train_step_time": 0.5}, step_num=begin)
        for begin in (0, 50, 100)
    )

    assert values_of(steps(GPT_3[0], log)) == [(50, 0.5, None, 50), (100, 0.5, None, 50)]


def test_blocks_with_the_number_of_their_last_step() -> None:
    log = "".join(
        record("block_start", samples_count=4 * (number - 50)) + stats({"throughput": 8.0}, step_num=number)
        for number in (50, 100)
    )

    assert values_of(steps(GPT_3[0], log)) == [(50, 0.5, None, 50), (100, 0.5, None, 50)]


def test_the_last_block_ends_with_the_run() -> None:
    log = record("block_start", samples_count=0) + stats({"train_step_time": 2.5}, step=0)
    log += record("run_stop", samples_count=12, status="success")

    assert items(*GPT_3, log) == [Step(step=3, time_s=2.5, other_values={}, mean_of=3), Notice(kind="finished")]


def test_the_loss_of_a_block_is_the_last_one_in_it() -> None:
    log = record("train_loss", 3.5, samples_count=8) + stats({"train_loss": 2.5}, samples_count=16, step=4)
    log += stats({"train_step_time": 1.0}, step=24) + stats({"train_step_time": 1.0}, step=32)

    assert values_of(steps(*GPT_3, log)) == [(6, 1.0, 2.5, 6), (8, 1.0, None, 2)]


def test_a_run_that_ended_in_its_first_block_has_the_steps_of_its_losses() -> None:
    log = stats({"train_loss": 3.5}, samples_count=8, step=2) + record("train_loss", 2.5, samples_count=16)

    assert values_of(steps(*GPT_3, log)) == [(2, None, 3.5, 1), (4, None, 2.5, 1)]
    assert values_of(steps(*GPT_3, log, stats({"train_step_time": 1.0}, step=24))) == [(6, 1.0, 2.5, 6)]


def test_losses_of_a_second_run_replace_no_step_of_the_first() -> None:
    run = [stats({"train_step_timing": 3.0 + n}, step=400 * n) for n in (1, 2)]
    log = record("run_start") + stats({"train_loss": 3.5}, samples_count=8)

    assert values_of(steps(*GPT_3, *run, log)) == [(1, 4.0, None, 1), (2, 5.0, None, 1)]


def test_steps_with_their_own_time_keep_it_at_the_end_of_a_block() -> None:
    log = record("block_start", samples_count=0)
    log += "".join(stats({"train_step_time": float(n)}, step=4.0 * n) for n in (1, 2))
    log += stats({"train_step_time": 1.5}, step=0) + record("eval_start", samples_count=8)

    assert values_of(steps(*GPT_3, log)) == [(1, 1.0, None, 1), (2, 2.0, None, 1)]
