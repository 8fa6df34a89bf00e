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


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (("slurm-1234-node001.out", "slurm-1234-node002.out"), ("node001", "node002")),  # srun --output=slurm-%j-%N.out
        (("log-2026-11-22-node-3.log", "log-2026-11-22-node-4.log"), ("node-3", "node-4")),
        (("a3-ultra-001.log", "a3-ultra-002.log"), ("a3-ultra-001", "a3-ultra-002")),
        (("p5-st-48xlarge-1.log", "p5-st-48xlarge-2.log"), ("p5-st-48xlarge-1", "p5-st-48xlarge-2")),
        (("x_r12i3n04.out", "x_r12i3n05.out"), ("r12i3n04", "r12i3n05")),
        (("ip-10-0-1-23.log", "ip-10-0-1-24.log"), ("ip-10-0-1-23", "ip-10-0-1-24")),
    ],
)
def test_a_host_whose_name_has_several_numbers_is_complete(names: tuple[str, ...], hosts: tuple[str, ...]) -> None:
    assert processes(*names) == [Process(host=host) for host in hosts]


@pytest.mark.parametrize("name", ["slurm-1234-{}.out", "1234-{}.out", "llama-70b-worker-{}.log", "job-1-task-{}.log"])
def test_the_number_of_a_rank_may_follow_that_of_a_job(name: str) -> None:
    assert processes(name.format(0), name.format(1)) == [Process(0), Process(1)]
