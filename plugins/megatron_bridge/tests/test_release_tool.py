"""The tool for maintainers that compares the recipes with a new release of NVIDIA's collection."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[1] / "tools"
METADATA = """
general: {workload: tiny, workload_type: pretrain, framework: megatron_bridge}
repositories: {megatron_bridge: {commit: abc}}
run:
  gpu_configs:
    gb300: {model_configs: [{model_size: 8b, dtypes: [bf16, fp8], scales: [8], proxy_scales: [4]}]}
    h100: {model_configs: [{model_size: 8b, dtypes: {fp8: [64]}}]}
    b200: {model_configs: [{model_size: 8b, dtypes: fp8, scales: [16]}]}
"""
LAUNCH = """
cd $LLMB_INSTALL/workloads/pretrain_tiny/Megatron-Bridge
export NCCL_IB_QPS_PER_CONNECTION=4
python3 scripts/performance/setup_experiment.py --gpu $GPU_TYPE --num_gpus $JOB_TOTAL_GPUS --offline --max_steps=50
"""


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("yaml", reason="the tool reads YAML")
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("launcher")


def test_every_published_point_has_the_arguments_and_variables_of_its_launch_script(
    launcher: ModuleType, tmp_path: Path
) -> None:
    folder = tmp_path / "collection/tiny"
    folder.mkdir(parents=True)
    (folder / "metadata.yaml").write_text(METADATA)
    (folder / "launch.sh").write_text(LAUNCH)
    (tmp_path / "scratch").mkdir()
    points = list(launcher.published_points(tmp_path / "collection", tmp_path / "scratch"))

    assert [(point.gpu_type, point.dtype, point.gpus) for point in points] == [
        ("gb300", "bf16", 8), ("gb300", "bf16", 4), ("gb300", "fp8", 8), ("gb300", "fp8", 4), ("h100", "fp8", 64),
        ("b200", "fp8", 16),
    ]  # fmt: skip
    assert points[0].arguments == ("--gpu", "gb300", "--num_gpus", "8", "--offline", "--max_steps=50")
    assert (points[0].commit, points[0].env) == ("abc", {"NCCL_IB_QPS_PER_CONNECTION": "4"})
