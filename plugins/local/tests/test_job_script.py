"""The bash scripts of jobs, beyond those of the contract."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from parts.jobs import job

from llmb import Dataset, Environment, FrozenMap, Image, Job, Phase, SpecError, Target, Task, Venv
from llmb_local.job_script import lock_word
from llmb_local.options import ContainerOptions, LocalOptions
from llmb_local.plugin import Local

GOLDEN = Path(__file__).parent / "golden"


IMAGE = Image(ref="nvcr.io/nvidia/nemo:24.09")


@pytest.fixture(autouse=True)
def _no_engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the engines of this machine, which would change the scripts."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda _name: None)


def target(**options: Any) -> Target[LocalOptions]:
    return Target(scheduler="local", workdir="/work", options=LocalOptions(**options))


def test_the_job_and_every_rank_of_every_phase_have_logs_of_their_own() -> None:
    phases = (Phase(name="convert", command=("convert",), ranks="first"), Phase(name="perf", command=("train",)))
    folder = "/work/runs/abcde-tiny/logs"
    assert Local().build_job(job(tasks_per_node=8, phases=phases), target()).logs == {
        "llmb-local": ("/work/runs/abcde-tiny/out.log",),
        "convert": (f"{folder}/convert.{{attempt}}.0.log",),
        "perf": tuple(f"{folder}/perf.{{attempt}}.{rank}.log" for rank in range(8)),
    }


@pytest.mark.parametrize(
    ("lock", "word"),
    [
        ("$HOME/.cache/llmb-$HOSTNAME.lock", '"$HOME"/.cache/llmb-"$HOSTNAME".lock'),
        ("/tmp/it's $(touch x)", "'/tmp/it'\"'\"'s $(touch x)'"),
        ("/tmp/$HOMELESS", "'/tmp/$HOMELESS'"),
    ],
)
def test_only_two_variables_of_a_lock_are_expanded(lock: str, word: str) -> None:
    assert lock_word(lock) == word


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"nodes": 2}, "the job needs 2 nodes, but the local scheduler has one")],
)
def test_a_job_of_several_nodes_is_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Local().build_job(job(**changes), target())


@pytest.mark.parametrize("lock", ["", "llmb.lock", "$HOSTNAME.lock", "$HOMELESS/lock", "/tmp/"])
def test_a_lock_that_may_name_different_files_is_rejected(lock: str) -> None:
    with pytest.raises(SpecError, match=r"target.lock: invalid lock file .*; expected the absolute path of a file"):
        Local().build_job(job(), target(lock=lock))


@pytest.mark.parametrize("lock", ["/tmp/a\nb", "/tmp/lock\n", "/tmp/\x1b[31m"])
def test_a_lock_with_a_control_character_is_rejected(lock: str) -> None:
    with pytest.raises(SpecError, match=r"target.lock: invalid lock file .*; expected the absolute path of a file"):
        Local().build_job(job(), target(lock=lock))


@pytest.mark.parametrize(
    "container",
    [{"options": ("--rm", "a\nb")}, {"network": "a\nb"}, {"ipc": "a\nb"}, {"capabilities": ("a\nb",)}],
)
def test_a_word_for_a_container_with_a_control_character_is_rejected(container: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r'invalid value "a\\nb"; expected text of one line'):
        ContainerOptions(**container)


@pytest.mark.parametrize(
    ("runtime", "base", "message"),
    [
        ("venv", IMAGE, '"venv" does not suit the recipe, which runs in the image nvcr.io/nvidia/nemo:24.09'),
        ("venv", None, '"venv" does not suit the recipe, which has no virtual environment'),
        ("docker", Venv(lock="", python=">=3.12"), '"docker" does not suit the recipe, which has no image'),
        ("enroot", None, '"enroot" does not suit the recipe, which has no image'),
    ],
)
def test_a_runtime_that_does_not_suit_the_recipe_is_rejected(runtime: str, base: Any, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"target.runtime: {message}")):
        Local().prepare_env(Environment(base=base), target(runtime=runtime))


def test_a_setting_that_enroot_does_not_support_is_rejected() -> None:
    container = ContainerOptions(network="none", memory_gb=2.0, options=("--rw",))
    in_image = job(environment=Environment(base=IMAGE))
    with pytest.raises(SpecError) as caught:
        Local().build_job(in_image, target(runtime="enroot", container=container))
    assert [fault.key for fault in caught.value.faults] == ["target.container.network", "target.container.memory_gb"]
    assert "enroot does not support this key" in str(caught.value)
    assert Local().build_job(in_image, target(runtime="docker", container=container)).text


@pytest.mark.parametrize("installed", [True, False])
def test_an_environment_needs_no_uv_beside_llmb(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package without its program, or no package, as after `pip install --no-deps`. The task searches for uv."""
    if installed:
        monkeypatch.setattr("uv.find_uv_bin", Mock(side_effect=FileNotFoundError))
    else:
        monkeypatch.setitem(sys.modules, "uv", None)
    [task] = Local().prepare_env(Environment(base=Venv(lock="", python=">=3.12")), target())
    assert isinstance(task.work, str)
    assert "\nuv=''\n" in task.work


def test_there_are_no_tasks_without_an_environment() -> None:
    assert Local().prepare_env(Environment(), target()) == ()


def test_the_job_of_a_dataset_runs_all_ranks_on_one_node() -> None:
    made = Task(key="a", kind="data", work=job(nodes=2, tasks_per_node=3), check="true")
    fetched = Task(key="b", kind="data", work="true", check="true")

    folded, left = Local().prepare_dataset(Dataset(tasks=(made, fetched)), target()).tasks
    assert isinstance(folded.work, Job)
    assert (folded.work.nodes, folded.work.tasks_per_node) == (1, 6)
    assert left == fetched


@pytest.mark.parametrize(("answers", "finished", "status"), [("0 137", False, 137), ("0", True, 0), ("3", False, 3)])
def test_an_exit_code_0_without_the_file_finished_is_queried_again(
    tmp_path: Path, answers: str, finished: bool, status: int
) -> None:
    docker = f"#!/bin/bash\nanswers=({answers})\nasked=$(cat asked 2>/dev/null)\necho $((asked + 1)) >asked\n"
    (tmp_path / "docker").write_text(f'{docker}echo "${{answers[asked]:-${{answers[-1]}}}}"\n')
    (tmp_path / "docker").chmod(0o755)
    if finished:
        (tmp_path / "finished").touch()
    functions = (GOLDEN / "docker.sh").read_text()
    begin = functions.index("await_container() {")
    await_container = functions[begin : functions.index("\n}\n", begin) + 3]
    script = (
        f"without_locks() {{ \"$@\"; }}\n{await_container}status='' engine_was_down=''; await_container; echo $status"
    )
    done = subprocess.run(
        ["bash", "-uc", f"engine=./docker container=c\n{script}"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (f"{status}\n", "")


def test_ranks_see_the_variables_of_the_job_not_those_of_llmb(tmp_path: Path) -> None:
    command = ("sh", "-c", 'echo "$PYTHONPATH ${PYTHONHOME-} $RANK $MASTER_ADDR"')
    phases = tuple(Phase(name=name, command=command, contained=name == "inside") for name in ("inside", "outside"))
    env = FrozenMap({"PYTHONPATH": "/of/the job", "RANK": "7", "MASTER_ADDR": "7"})
    venv = Environment(base=Venv(lock="", python=">=3.12"))
    in_venv = job(directory=str(tmp_path), phases=phases, environment=venv, env=env)
    script = Local().build_job(in_venv, target(lock=f"{tmp_path}/lock")).text
    (tmp_path / "detached.sh").touch()
    outer = {"PATH": "/usr/bin:/bin", "PYTHONHOME": "/left", "PYTHONPATH": "/left"}
    subprocess.run(["bash", "-c", script], env=outer, check=True)
    assert (tmp_path / "logs/inside.0.0.log").read_text() == "/of/the job  0 127.0.0.1\n"
    assert (tmp_path / "logs/outside.0.0.log").read_text() == "/of/the job /left 0 127.0.0.1\n"


def test_a_job_that_needs_an_mpi_launcher_is_rejected() -> None:
    target = Target(scheduler="local", workdir="/work", options=LocalOptions())

    with pytest.raises(SpecError, match=r"needs an MPI launcher \(pmix\), which the local scheduler does not have"):
        Local().build_job(job(mpi="pmix"), target)
    assert Local().build_job(job(mpi="pmix", mpi_optional=True), target).text
