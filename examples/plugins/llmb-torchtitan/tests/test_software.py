"""The build of the software, with stand-ins for Python, git and apt-get that record their arguments.

tests/test_docker_titan.py of the repository builds small packages with the real programs in a container.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from llmb import Job, RunPlan, Task

STAND_INS = {
    "python3": '''echo "python3 $*" >>"$CALLS"; mkdir -p "$5/bin"; cp "$STANDINS/venv-python" "$5/bin/python"''',
    "venv-python": """case $* in
  *nvidia.nvshmem*) echo "$NVSHMEM_FOLDER" ;;
  *torch.__version__*) echo 2.11.0 ;;
  *) echo "python $*" >>"$CALLS"
    env | grep -E '^(NVSHMEM_DIR|RDMA_CORE_HOME|HYBRID_EP_MULTINODE)=' >>"$CALLS" || true ;;
esac""",
    "git": '''echo "git $*" >>"$CALLS"; [ "$1" != clone ] || mkdir -p "$3/build/lib"
[ "${3##*/}" != rdma-core ] || echo 'echo build rdma-core >>"$CALLS"' >"$3/build.sh"''',
    "apt-get": '''echo "apt-get $1" >>"$CALLS"''',
}


@pytest.fixture
def build(tmp_path: Path, plan_run: Callable[..., RunPlan]) -> Callable[[str], list[str]]:
    """Return a function that builds the software for a GPU type, and returns the recorded commands."""
    for name, text in STAND_INS.items():
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(0o755)
    (tmp_path / "nvshmem/lib").mkdir(parents=True)
    (tmp_path / "nvshmem/lib/libnvshmem_host.so.3").touch()
    calls = tmp_path / "calls"

    def run(gpu_type: str) -> list[str]:
        gpus = 512 if gpu_type == "h100" else 256
        workload = {"recipe": "torchtitan/deepseek-v3", "gpu_type": gpu_type, "dtype": "bf16", "gpus": gpus}
        [task] = [each.task for each in plan_run(workload=workload).tasks if each.task.kind == "software"]
        folder, script = tmp_path / "software", tmp_path / "build.sh"
        job = job_of(task)
        script.write_text(*job.files.values())
        env = {
            "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
            "CALLS": str(calls),
            "STANDINS": f"{tmp_path}/bin",
            "NVSHMEM_FOLDER": f"{tmp_path}/nvshmem",
            **job.phases[0].env,
        }
        done = subprocess.run(["bash", script, folder], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (folder / ".complete").read_text() == "2.11.0\n"
        assert not (folder / "build").exists()
        return [line.replace(f"{folder}/", "") for line in calls.read_text().splitlines()]

    return run


def job_of(task: Task) -> Job:
    assert isinstance(task.work, Job)
    return task.work


def test_deepep_of_the_main_branch_is_built_with_nvshmem(build: Callable[[str], list[str]], tmp_path: Path) -> None:
    calls = build("h100")
    assert calls[0] == f"python3 -m venv --without-pip --system-site-packages {tmp_path}/software"
    assert "python -m pip install --no-deps torch==2.11.0 torchvision==0.26.0 torchaudio==2.11.0" in calls
    assert "git -C build/DeepEP checkout 567632dd59810d77b3cc05553df953cc0f779799" in calls
    built = calls.index("python -m pip install . --no-build-isolation")
    assert calls[built + 1] == f"NVSHMEM_DIR={tmp_path}/nvshmem"
    assert (tmp_path / "nvshmem/lib/libnvshmem_host.so").exists()
    assert not any("ao.git" in call or "rdma-core.git" in call for call in calls)


def test_hybridep_is_built_for_several_nodes_and_torchao_for_blackwell(
    build: Callable[[str], list[str]], tmp_path: Path
) -> None:
    calls = build("gb200")
    assert calls.index("build rdma-core") < calls.index("python -m pip install . --no-build-isolation")
    assert "git -C rdma-core checkout v60.0" in calls
    assert "RDMA_CORE_HOME=rdma-core/build" in calls
    assert (tmp_path / "software/rdma-core/build").is_dir()  # HybridEP's compiler reads its headers in the run
    assert "HYBRID_EP_MULTINODE=1" in calls
    assert "git -C build/ao checkout 7bfc8da876a4360d4108e6882e0fda6ec4cb601d" in calls
    assert calls.count("python -m pip install . --no-build-isolation") == 2
