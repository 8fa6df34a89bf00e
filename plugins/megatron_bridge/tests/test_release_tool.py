"""The tool for maintainers that compares the recipes with a new release of NVIDIA's collection."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
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


def test_a_workload_that_fine_tunes_has_a_checkpoint_below_the_folder_of_the_installation(
    launcher: ModuleType, tmp_path: Path
) -> None:
    folder = tmp_path / "collection/tiny"
    folder.mkdir(parents=True)
    (folder / "metadata.yaml").write_text(METADATA.replace("pretrain", "finetune"))
    script = LAUNCH.replace("pretrain_tiny", "finetune_tiny").replace(
        "--offline", "--hf_token ${HF_TOKEN:?} --load $PWD"
    )
    (folder / "launch.sh").write_text(script)
    (tmp_path / "scratch").mkdir()
    [first, *_] = launcher.published_points(tmp_path / "collection", tmp_path / "scratch")
    assert first.workload == "finetune_tiny"
    assert (
        first.arguments[first.arguments.index("--load") + 1] == "$LLMB_INSTALL/workloads/finetune_tiny/Megatron-Bridge"
    )


RESOLVER = """#!{python}
import json, sys
results = [{{"config": {{"words": len(words)}}, "env": {{"NCCL_NVLS_ENABLE": "0"}}}} for words in json.load(sys.stdin)]
print(json.dumps(results))
"""


def commit(folder: Path, *files: str, submodule: str = "") -> str:
    """Return the commit of a new repository with these files, and with Megatron-LM at ``submodule``."""

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=me", "-c", "user.email=me@localhost", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    for name in files:
        (folder / name).mkdir(parents=True)
        (folder / name / "code.py").write_text("")
    git("init", "-q")
    git("add", ".")
    if submodule:
        git("update-index", "--add", "--cacheinfo", f"160000,{submodule},3rdparty/Megatron-LM")
    git("commit", "-qm", "first")
    return git("rev-parse", "HEAD")


@pytest.mark.usefixtures("launcher")
def test_the_tool_prints_differences_and_writes_what_the_scripts_resolve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = commit(tmp_path / "megatron", "megatron")
    released = commit(tmp_path / "bridge", "src", "scripts/performance", submodule=pinned)
    folder = tmp_path / "collection/tiny"
    folder.mkdir(parents=True)
    (folder / "metadata.yaml").write_text(METADATA.replace("abc", f"'{released}'"))
    names = "--model_recipe_name tiny --compute_dtype bf16 --time_limit 00:30:00"
    (folder / "launch.sh").write_text(LAUNCH.replace("--offline", f"--offline {names}"))
    resolver = tmp_path / "resolver"
    resolver.write_text(RESOLVER.format(python=sys.executable))
    resolver.chmod(0o755)
    clones = ["--bridge", str(tmp_path / "bridge"), "--megatron", str(tmp_path / "megatron")]
    output = tmp_path / "release.json"
    arguments = [str(tmp_path / "collection"), *clones, "--python", str(resolver), "-o", str(output)]
    monkeypatch.setattr(sys, "argv", ["resolve_release.py", *arguments])

    with pytest.raises(SystemExit) as ended:
        importlib.import_module("resolve_release").main()
    printed = capsys.readouterr().out.splitlines()
    assert (ended.value.code, len(printed)) == (1, 7)
    assert printed[0] == "tiny gb300 bf16 8: no recipe has this point"
    assert printed[-1] == "tiny: 6 points, 0 equal"
    points = json.loads(output.read_text())
    assert [points[0][name] for name in ("gpu_type", "dtype", "gpus")] == ["gb300", "bf16", 8]
    assert points[0]["arguments"][:4] == ["--gpu", "gb300", "--num_gpus", "8"]
    assert points[0]["env"] == {"NCCL_NVLS_ENABLE": "0", "NCCL_IB_QPS_PER_CONNECTION": "4"}
    assert points[0]["config"] == {"words": len(points[0]["arguments"]) + 2}  # those that the launcher's plugin adds
