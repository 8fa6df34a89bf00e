"""The user of a container, with a stand-in for the engine, because only root can start one with another setting."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from llmb import resource_text

OWN = f"--user {os.getuid()}:{os.getgid()}"


@pytest.mark.parametrize(
    ("engine", "security", "options"),
    [
        ("docker", '["name=seccomp,profile=default"]', OWN),
        ("docker", '["name=seccomp,profile=default","name=userns"]', f"--userns host {OWN}"),
        ("docker", '["name=seccomp,profile=default","name=rootless"]', "--user 0:0"),
        ("podman", "rootless=false", OWN),
        ("podman", "rootless=true", "--user 0:0"),
    ],
)
def test_files_of_a_container_belong_to_the_user(tmp_path: Path, engine: str, security: str, options: str) -> None:
    (tmp_path / engine).write_text(f"#!/bin/sh\n[ $1 = image ] || echo '{security}'\n")
    (tmp_path / engine).chmod(0o755)
    settings = f"engine={engine} image=x gpus='' gpus_stated='' LLMB_RUN_DIR=$PWD run_options=()"
    script = "\n".join([settings, resource_text("llmb_local", "runtimes/docker_run.sh"), 'echo "${run_options[*]}"'])
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, check=True, capture_output=True, text=True)
    assert done.stdout.startswith(options + " ")
