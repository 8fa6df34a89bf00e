"""numa_rank_wrapper.sh, executed as by a scheduler: the processors and the PYTHONPATH of a rank."""

from __future__ import annotations

import os
import subprocess
from importlib import resources
from pathlib import Path

import pytest

SCRIPT = resources.files("llmb_megatron_bridge") / "numa_rank_wrapper.sh"
NUMACTL = '#!/bin/sh\necho "numactl $1 $2"\nshift 2\nexec "$@"\n'


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "numactl").write_text(NUMACTL)
    (folder / "numactl").chmod(0o755)
    return folder


def rank(
    folder: Path, local_rank: int, *, node_rank: int = 0, per_node: int = 8, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run one rank, whose command prints PYTHONPATH."""
    ranks = {
        "LLMB_RANK": node_rank * per_node + local_rank,
        "LLMB_LOCAL_RANK": local_rank,
        "LLMB_NODE_RANK": node_rank,
        "LLMB_LOCAL_WORLD_SIZE": per_node,
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
def test_a_rank_is_bound_to_the_numa_node_of_its_gpu(
    tmp_path: Path, numa_gpus: str, local_rank: int, node: int
) -> None:
    """A NUMA node has 4 of 8 GPUs, or 2 of 4. On a machine without the NUMA node, the wrapper reports it."""
    done = rank(tmp_path, local_rank, NUMA_GPUS=numa_gpus)
    if Path(f"/sys/devices/system/node/node{node}").is_dir():
        assert done.stdout.splitlines() == [f"numactl --cpunodebind={node} --membind={node}", "trains "]
    else:
        assert f"rank {local_rank} is not bound: numactl or NUMA node {node} does not exist" in done.stderr


@pytest.mark.usefixtures("programs")
def test_a_rank_without_its_numa_node_runs_unbound_with_a_warning(tmp_path: Path) -> None:
    done = rank(tmp_path, 7, NUMA_GPUS="1")
    if not Path("/sys/devices/system/node/node7").exists():
        assert (done.returncode, done.stdout) == (0, "trains \n")
        assert "rank 7 is not bound: numactl or NUMA node 7 does not exist" in done.stderr


def test_the_folder_of_the_scripts_comes_first_in_pythonpath(tmp_path: Path) -> None:
    assert rank(tmp_path, 0, SCRIPTS="/s").stdout == "trains /s\n"
    assert rank(tmp_path, 0, SCRIPTS="/s", PYTHONPATH="/of/the/image").stdout == "trains /s:/of/the/image\n"


def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    assert rank(tmp_path, 0, STATUS="7").returncode == 7
