"""The example plugins as a third party publishes them: wheels beside the core's, in an environment of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.deadline import DEADLINE_S
from parts.sshd import Sshd
from parts.wheels import EXAMPLES, ROOT, EmptyEnvironment

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("wheels")]  # built once

STANDIN = ROOT / "tests/torchtitan_standin"
TOKENS_PER_S = 5000  # what the stand-in prints


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> EmptyEnvironment:
    """Install core, the examples, and what their own tests need."""
    environment = EmptyEnvironment(tmp_path_factory.mktemp("examples"))
    names = ["core", "local", *(example.name for example in EXAMPLES)]
    environment.install(*(wheels[name] for name in names), "pytest", "hypothesis")
    return environment


@pytest.fixture
def titan(tmp_path: Path) -> Any:
    """Return a function that writes a spec of torchtitan on MI300X, on two hosts."""

    def write(**tables: dict[str, Any]) -> str:
        usual: dict[str, dict[str, Any]] = {
            "workload": {"recipe": "torchtitan/llama3.1-8b", "gpu_type": "mi300x", "dtype": "bf16", "gpus": 16},
            "parallelism": {"fsdp": 16, "micro_batch_size": 2, "global_batch_size": 32},
            "target": {"scheduler": "hosts", "hosts": ["a", "b"], "workdir": str(tmp_path / "shared")},
        }
        file = tmp_path / "titan.toml"
        names = dict.fromkeys((*usual, *tables))
        file.write_text(tomli_w.dumps({name: usual.get(name, {}) | tables.get(name, {}) for name in names}))
        return str(file)

    return write


def report(environment: EmptyEnvironment, *arguments: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    done = environment.llmb(*arguments, "--json", env=env)
    assert done.returncode == 0, done.stderr + done.stdout
    return dict(json.loads(done.stdout))


def test_they_are_listed_with_what_they_implement(installed: EmptyEnvironment) -> None:
    plugins = {plugin["name"]: plugin for plugin in report(installed, "plugins")["plugins"]}
    assert set(plugins) == {"local", "torchtitan", "hosts", "mi300x"}
    assert [plugin["error"] for plugin in plugins.values()] == [None] * 4
    assert plugins["mi300x"]["distribution"] == "llmb-mi300x"
    assert plugins["mi300x"]["hooks"] == ["accelerators", "signatures"]
    assert plugins["torchtitan"]["hooks"] == [
        *("build_job", "diagnose", "parse_log", "prepare_dataset", "prepare_env"),
    ]
    assert {"host", "submit", "poll", "cancel"} <= set(plugins["hosts"]["hooks"])


def test_their_own_tests_pass_there(installed: EmptyEnvironment) -> None:
    for example in EXAMPLES:
        shutil.copytree(example / "tests", installed.folder / "tests" / example.name)
    done = subprocess.run(
        [installed.python, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "tests"],
        cwd=installed.folder,
        env=installed.env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_framework_a_scheduler_and_an_accelerator_that_know_nothing_of_each_other_make_one_job(
    installed: EmptyEnvironment, titan: Any
) -> None:
    [run] = report(installed, "run", titan(), "--dry-run")["runs"]
    job = run["job"]
    assert (job["nodes"], job["tasks_per_node"], job["gpus_per_node"]) == (2, 8, 8)
    assert "hosts=(a b)" in run["script"]
    assert "phase train all inside bash " in run["script"]
    assert "titan_rank_wrapper.sh python -m torchtitan.train " in run["script"]
    assert [task["kind"] for task in run["preparation"]] == ["repository"]


def test_a_run_through_all_three_over_ssh(installed: EmptyEnvironment, titan: Any, tmp_path: Path) -> None:
    spec = titan(
        workload={"gpus": 4, "steps": 20},
        parallelism={"fsdp": 4, "micro_batch_size": 1, "global_batch_size": 4},
        measure={"window": "last"},
        framework={"checkout": str(STANDIN), "python": str(installed.python)},
        target={"gpus_per_node": 2},
    )
    with Sshd(host="a b", env={"TMPDIR": str(tmp_path)}) as server:
        [run] = report(installed, "run", spec, env=server.env)["runs"]
        assert server.logins == 2
    assert (run["state"], run["verdict"]) == ("completed", None), run
    metrics = run["metrics"]
    assert metrics["step_time_s"] == pytest.approx(8192 / TOKENS_PER_S)
    assert metrics["tokens_per_s_per_gpu"] == pytest.approx(TOKENS_PER_S)
    assert metrics["peak_flops"] == 1307.4e12
    assert metrics["mfu"] == pytest.approx(metrics["flops_per_sequence"] / 8192 * TOKENS_PER_S / 1307.4e12)
    assert len(list((Path(run["directory"]) / "logs").glob("train.0.*.log"))) == 4
