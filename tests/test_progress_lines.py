"""Each long step of a run has a line on the terminal: image import, downloads, data preparation, copying logs."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from parts.docker import Registry
from parts.git import Upstream
from parts.screen import Screen
from parts.sshd import Sshd


def write_program(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)


def wait_for(gate: Path) -> str:
    return f"until [ -e {shlex.quote(str(gate))} ]; do sleep 0.02; done"


def test_a_download_of_a_repository_shows_the_progress_of_git(toy: Any, tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "upstream")
    write_program(tmp_path / "bin/pack", f'"$@" >{tmp_path}/pack\n{wait_for(toy.gate)}\ncat {tmp_path}/pack')
    (tmp_path / "gitconfig").write_text(f"[uploadpack]\npackObjectsHook = {tmp_path}/bin/pack\n")
    spec = toy.spec(framework={"repository": [upstream.url, upstream.commits[0]]})
    screen = Screen.of_llmb("run", spec, env={**toy.env, "GIT_CONFIG_GLOBAL": f"{tmp_path}/gitconfig"}, columns=120)
    screen.wait_for("preparing   repository: remote: Total ")
    toy.gate.touch()
    assert screen.end() == 0


def test_the_creation_of_a_virtual_environment_shows_its_folder(toy: Any, tmp_path: Path) -> None:
    # Not a stand-in for uv: the local scheduler takes the uv of its own environment. The script calls dirname next.
    held = f"case $1 in */cache/venv/*) {wait_for(toy.gate)} ;; esac"
    write_program(tmp_path / "bin/dirname", f'{held}\nexec {shutil.which("dirname")} "$@"')
    env = {**toy.env, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    screen = Screen.of_llmb("run", toy.spec(framework={"lock": "# no packages"}), env=env, columns=300)
    screen.wait_for(f"creating {toy.home}/work/cache/venv/")
    toy.gate.touch()
    assert screen.end() == 0


@pytest.mark.real
def test_an_image_import_shows_its_progress(toy_docker: Any, docker: Any) -> None:
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed")
    with Registry() as registry:
        image = f"{registry.address}/toy/tiny:3"
        docker("tag", toy_docker.image, image)
        docker("push", image)
        docker("image", "rm", image)
        with registry.paused():
            screen = Screen.of_llmb("run", toy_docker.spec(workload={"image": image}), env=toy_docker.env, columns=120)
            screen.wait_for(f"preparing   docker image {image}")
        assert screen.end() == 0
    docker("image", "rm", image)


def test_the_preparation_of_data_shows_its_last_output(toy: Any) -> None:
    end = f"printf 'file 1 of 10\\rfile 3 of 10\\r'; {wait_for(toy.gate)}"
    screen = Screen.of_llmb("run", toy.spec(framework={"task": "data", "task_end": end}), env=toy.env)
    screen.wait_for("preparing   toy data: file 3 of 10")
    toy.gate.touch()
    assert screen.end() == 0


@pytest.mark.slow
@pytest.mark.real
def test_copying_logs_over_a_slow_link_is_shown(toy: Any, tmp_path: Path) -> None:
    """After the end of the job is recorded, reading a log takes until the gate is open."""
    work = tmp_path / "work"
    held = f"if grep -q job_ended {toy.home}/runs/*/events.jsonl; then {wait_for(toy.gate)}; fi"
    write_program(tmp_path / "bin/stat", f'{held}\nexec {shutil.which("stat")} "$@"')
    (tmp_path / ".bash_profile").write_text(f"export PATH={tmp_path}/bin:$PATH\n")  # /etc/profile sets PATH again
    with Sshd(env={"HOME": str(tmp_path)}) as server:
        target = {"scheduler": "detached", "host": server.host, "workdir": str(work), "lock": f"{tmp_path}/lock"}
        screen = Screen.of_llmb("run", toy.spec(target=target), env={**toy.env, **server.env})
        screen.wait_for("copying logs")
        toy.gate.touch()
        assert screen.end() == 0
        assert "copying logs" not in screen.text
