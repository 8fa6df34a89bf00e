"""rank.sh, run as a scheduler runs it: which processors a rank gets, and which ranks are profiled into which files."""

from __future__ import annotations

import os
import subprocess
from importlib import resources
from pathlib import Path

import pytest

SCRIPT = resources.files("llmb_megatron_bridge") / "rank.sh"
NUMACTL = '#!/bin/sh\necho "numactl $1 $2"\nshift 2\nexec "$@"\n'
NSYS = (
    "#!/bin/sh\n"
    'echo "nsys $*"\n'
    'while [ "$1" != --output ]; do shift; done\n'
    '[ -n "$NSYS_FAILS" ] || echo report >"$2.nsys-rep"\n'
    "shift 2\n"
    'exec "$@"\n'
)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {"numactl": NUMACTL, "nsys": NSYS}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def rank(
    folder: Path, local_rank: int, *, node_rank: int = 0, per_node: int = 8, **env: str
) -> subprocess.CompletedProcess[str]:
    """One rank, whose command prints PYTHONPATH."""
    ranks = {
        "LLMB_RANK": node_rank * per_node + local_rank,
        "LLMB_LOCAL_RANK": local_rank,
        "LLMB_NODE_RANK": node_rank,
        "LLMB_LOCAL_WORLD_SIZE": per_node,
        "LLMB_JOB_ID": 658572,
        "LLMB_RUN_DIR": folder,
    }
    return subprocess.run(
        ["bash", str(SCRIPT), "sh", "-c", 'echo "trains ${PYTHONPATH-}"; exit ${STATUS-0}'],
        env={"PATH": f"{folder}/bin:{os.environ['PATH']}", **{key: str(value) for key, value in ranks.items()}, **env},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("numa_gpus", "local_rank", "node"),
    [("4", 0, 0), ("4", 3, 0), ("4", 4, 1), ("4", 7, 1), ("2", 0, 0), ("2", 1, 0), ("2", 2, 1), ("2", 3, 1)],
)
def test_a_rank_is_bound_to_its_gpus_numa_node(tmp_path: Path, numa_gpus: str, local_rank: int, node: int) -> None:
    """Of 8 GPUs four are on a node, of 4 two. A machine with one node, as most that run tests, says which it lacks."""
    done = rank(tmp_path, local_rank, NUMA_GPUS=numa_gpus)
    if Path(f"/sys/devices/system/node/node{node}").is_dir():
        assert done.stdout.splitlines() == [f"numactl --cpunodebind={node} --membind={node}", "trains "]
    else:
        assert f"rank {local_rank} is not bound: no numactl, or no NUMA node {node}," in done.stderr


@pytest.mark.usefixtures("programs")
def test_a_machine_without_that_numa_node_trains_unbound_and_says_so(tmp_path: Path) -> None:
    done = rank(tmp_path, 7, NUMA_GPUS="1")
    if not Path("/sys/devices/system/node/node7").exists():
        assert (done.returncode, done.stdout) == (0, "trains \n")
        assert "rank 7 is not bound: no numactl, or no NUMA node 7" in done.stderr


def test_scripts_come_first_on_the_path_of_modules(tmp_path: Path) -> None:
    assert rank(tmp_path, 0, SCRIPTS="/s").stdout == "trains /s\n"
    assert rank(tmp_path, 0, SCRIPTS="/s", PYTHONPATH="/of/the/image").stdout == "trains /s:/of/the/image\n"


def test_the_exit_status_is_the_trainings_own(tmp_path: Path) -> None:
    assert rank(tmp_path, 0, STATUS="7").returncode == 7


@pytest.mark.usefixtures("programs")
def test_every_rank_is_profiled_into_a_file_of_job_node_and_local_rank(tmp_path: Path) -> None:
    for local_rank in range(2):
        done = rank(tmp_path, local_rank, node_rank=3, per_node=4, NSYS="nsys profile -t cuda", NSYS_RANKS="all")
        assert done.returncode == 0, done.stderr
    reports = sorted(path.name for path in (tmp_path / "nsys_profile").iterdir())
    assert reports == ["profile_658572_3_0.nsys-rep", "profile_658572_3_1.nsys-rep"]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("ranks", "profiled", "with_metrics"),
    [("all", [0, 1, 2, 3, 4, 5, 6, 7], [0, 4]), ("1,3,6", [1, 3, 6], [1, 6]), ("5", [5], [5])],
)
def test_gpu_metrics_are_taken_once_on_each_node(
    tmp_path: Path, ranks: str, profiled: list[int], with_metrics: list[int]
) -> None:
    nsys = {"NSYS": "nsys profile", "NSYS_RANKS": ranks, "NSYS_METRICS": "--gpu-metrics"}
    outputs = {
        4 * node + local: rank(tmp_path, local, node_rank=node, per_node=4, **nsys).stdout
        for node in (0, 1)
        for local in range(4)
    }  # fmt: skip
    assert [each for each, output in outputs.items() if output.startswith("nsys profile")] == profiled
    assert [each for each, output in outputs.items() if "--gpu-metrics" in output] == with_metrics


@pytest.mark.usefixtures("programs")
def test_a_profile_that_was_not_written_is_a_failure(tmp_path: Path) -> None:
    done = rank(tmp_path, 0, NSYS="nsys profile", NSYS_RANKS="all", NSYS_FAILS="yes")
    assert done.returncode == 1
    assert "nsys wrote no" in done.stderr


@pytest.mark.usefixtures("programs")
def test_a_training_that_fails_under_the_profiler_keeps_its_status(tmp_path: Path) -> None:
    assert rank(tmp_path, 0, NSYS="nsys profile", NSYS_RANKS="all", STATUS="9").returncode == 9
