"""Ranks and hosts in the names and folders of logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.attempt_folders import earlier_attempts
from llmb.logs.processes import UNKNOWN_PROCESS, Process
from llmb.logs.rank_in_file_name import processes_of_logs


def processes(*names: str) -> list[Process]:
    return [*processes_of_logs(map(Path, names)).values()]


@pytest.mark.parametrize("name", ["train_gpu{}.log", "gpu{}.log", "gpu-{}.log", "train.GPU_{}.out", "b_gpu.{}.log"])
def test_one_log_per_gpu_has_the_number_of_its_rank(name: str) -> None:
    assert processes(*map(name.format, range(8))) == [Process(rank) for rank in range(8)]


@pytest.mark.parametrize("numbers", [(1, 2, 3), ("00", "01"), ("07", "12"), (31, 32)])
def test_a_host_may_be_called_gpu(numbers: tuple[object, ...]) -> None:
    assert processes(*(f"job_gpu{number}.log" for number in numbers)) == [
        Process(host=f"gpu{number}") for number in numbers
    ]


def test_a_part_of_a_word_is_not_a_gpu() -> None:
    assert processes("dgxgpu0.log", "dgxgpu1.log") == [Process(host="dgxgpu0"), Process(host="dgxgpu1")]


def test_a_folder_of_torchrun_has_the_number_of_the_attempt_and_of_the_local_rank() -> None:
    names = [f"logs/none_ab/attempt_{attempt}/{rank}/stderr.log" for attempt in (0, 1) for rank in (0, 1)]
    assert processes(*names) == [Process(0), Process(1)] * 2
    assert processes(names[1]) == [Process(1)]
    assert processes("attempt_0/3/stdout.log", "slurm-4711.out") == [Process(3), UNKNOWN_PROCESS]


def test_local_ranks_of_several_launchers_are_not_ranks() -> None:
    assert processes("a/attempt_0/1/stdout.log", "b/attempt_0/1/stdout.log") == [UNKNOWN_PROCESS, UNKNOWN_PROCESS]


def test_each_launcher_counts_its_own_attempts() -> None:
    logs = [*map(Path, ("a/attempt_0/0/stdout.log", "a/attempt_10/0/stdout.log", "a/attempt_9/0/stderr.log"))]
    others = [*map(Path, ("b/attempt_0/0/stdout.log", "attempt_0/stdout.log", "slurm-4711.out"))]
    assert earlier_attempts([*logs, *others]) == {logs[0], logs[2]}
