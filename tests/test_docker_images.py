"""How images come to be on a machine, and what is said where a container cannot be had."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.docker import Docker, Registry

pytestmark = pytest.mark.real

NOBODY = 65534


@pytest.fixture
def registry() -> Iterator[Registry]:
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed")
    with Registry() as running:
        yield running


def push(docker: Any, registry: Registry, image: str, *command: str) -> str:
    """Put the tiny image with what this command adds into the registry, and forget it here; its name there."""
    name = f"{registry.address}/toy/tiny:2"
    words = command or ("touch", "/new")
    docker("run", "--name", "layer", "--network", "host", "--entrypoint", "", image, *words)
    docker("commit", "layer", name)
    docker("rm", "--volumes", "layer")
    if registry.login:
        user, password = registry.login
        docker("login", "--username", user, "--password", password, registry.address)
    docker("push", name)
    docker("image", "rm", name)
    if registry.login:
        docker("logout", registry.address)
    return name


def provenance(record: Path) -> dict[str, Any]:
    """What the record says of what the run ran on."""
    return dict(tomllib.loads((record / "run.toml").read_text())["provenance"])


def failure(run: dict[str, Any]) -> str:
    assert run["state"] == "failed"
    return str(run["failure"]["cause"])


def test_an_image_is_pulled_once_and_its_digest_recorded(toy_docker: Any, docker: Any, registry: Registry) -> None:
    name = push(docker, registry, toy_docker.image)
    done = toy_docker.llmb("run", toy_docker.spec(workload={"image": name, "dtype": ["bf16", "fp8"]}))
    assert done.returncode == 0, done.stderr
    assert f"preparing, docker image {name}" in done.stderr
    [task] = (toy_docker.home / "work/tasks").iterdir()
    assert f"pulling {name}: 2 of 2 layers" in (task / "out.log").read_text()
    [digest] = json.loads(docker("image", "inspect", "--format", "{{json .RepoDigests}}", name))
    for record in toy_docker.records:
        assert provenance(record)["image_digest"] == digest
    assert toy_docker.run(workload={"image": name})["state"] == "completed"
    assert (task / "out.log").read_text().count("2 of 2 layers") == 1
    docker("image", "rm", name)


def test_a_pinned_image_is_the_one_of_its_digest_whatever_its_tag_has_become(
    toy_docker: Any, docker: Any, registry: Registry
) -> None:
    name = push(docker, registry, toy_docker.image)
    docker("pull", name)
    [digest] = json.loads(docker("image", "inspect", "--format", "{{json .RepoDigests}}", name))
    docker("image", "rm", name)
    docker("tag", toy_docker.image, name)
    docker("push", name)
    docker("image", "rm", name)
    run = toy_docker.run(workload={"image": digest})
    assert run["state"] == "completed", run
    assert provenance(Path(run["directory"]))["image_digest"] == digest
    docker("image", "rm", digest)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("{registry}/toy/missing:1", "there is no image {registry}/toy/missing:1; see workload.image"),
        ("No-Image", "No-Image: that is no name of an image; see workload.image"),
        ("127.0.0.1:9/toy/tiny:1", "the registry of 127.0.0.1:9/toy/tiny:1 cannot be reached"),
        ("registry.invalid/toy/tiny:1", "the registry of registry.invalid/toy/tiny:1 cannot be reached"),
    ],
)
def test_an_image_that_cannot_be_had_is_one_line(toy_docker: Any, registry: Registry, name: str, told: str) -> None:
    cause = failure(toy_docker.run(workload={"image": name.format(registry=registry.address)}))
    assert told.format(registry=registry.address) in cause


def test_a_registry_that_wants_a_login_is_told(toy_docker: Any, docker: Any) -> None:
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed")
    with Registry(login=("me", "secret")) as registry:
        name = push(docker, registry, toy_docker.image)
        cause = failure(toy_docker.run(workload={"image": name}))
        assert f"wants a login, or has no such image; `docker login {registry.address}`" in cause


def test_a_mount_whose_source_is_missing_is_refused_and_makes_nothing(toy_docker: Any, tmp_path: Path) -> None:
    cause = failure(toy_docker.run(mounts={str(tmp_path / "missing"): "/data"}))
    assert "a path of [mounts] is not there" in cause
    assert not (tmp_path / "missing").exists()


def test_gpus_without_the_nvidia_runtime_are_told(toy_docker: Any) -> None:
    options = {"container": {"ulimits": {}, "options": ["--gpus", "all"]}}
    assert "install nvidia-container-toolkit" in failure(toy_docker.run(target=options))


def test_an_image_without_bash_is_told(toy_docker: Any, docker: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/file").touch()
    docker.import_image(tmp_path / "empty", "llmb-empty:1")
    assert "the image has no bash" in failure(toy_docker.run(workload={"image": "llmb-empty:1"}))
    docker("image", "rm", "llmb-empty:1")


def test_a_full_disk_is_told(toy_docker: Any, docker: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    large = ("dd", "if=/dev/urandom", "of=/large", "bs=1048576", "count=48")
    name = push(docker, registry, toy_docker.image, *large)
    with Docker(disk_mb=32) as small:
        for key, value in small.env.items():
            monkeypatch.setenv(key, value)
        told = failure(toy_docker.run(workload={"image": name}))
    assert "the disk is full where docker keeps its images" in told


def test_how_far_a_pull_is_is_shown(toy_docker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Docker's words are played back, so that the pull waits half done."""
    fake = tmp_path / "bin/docker"
    fake.parent.mkdir()
    lines = "a1: Pulling fs layer\\nb2: Pulling fs layer\\na1: Pull complete\\n"
    wait = f"until [ -e {toy_docker.gate} ]; do sleep 0.02; done"
    real = f'exec {shutil.which("docker")} "$@"'
    fake.write_text(f'#!/bin/bash\n[ "$1" != pull ] || {{ printf "{lines}"; {wait}; exit 1; }}\n{real}\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    running = toy_docker.start("run", toy_docker.spec(workload={"image": "other:1"}))
    assert toy_docker.wait_for_message(running, "preparing, docker image other:1: pulling other:1: 1 of 2 layers")
    toy_docker.gate.touch()
    running.communicate(timeout=60)


def test_without_a_daemon_nothing_is_begun(toy_docker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    done = toy_docker.llmb("run", toy_docker.spec(target={"runtime": "docker"}))
    assert done.returncode == 4
    assert done.stderr == "llmb: Docker's daemon does not run; start it with `sudo systemctl start docker`\n"
    assert toy_docker.records == []


def test_without_permission_on_the_socket_nothing_is_begun(docker: Any) -> None:
    """Asked as a user who is not in Docker's group."""
    from llmb import Target
    from llmb_local.options import LocalOptions
    from llmb_local.plugin import Local

    docker.socket.chmod(0o660)
    script = Local().probe(Target(scheduler="local", workdir="/work", options=LocalOptions(runtime="docker")))
    done = subprocess.run(["bash", "-c", script], user=NOBODY, cwd="/", capture_output=True, text=True)
    assert "docker.refusal=you may not use Docker's socket; run `sudo usermod -aG docker $USER`" in done.stdout


def test_results_belong_to_who_runs(toy_docker: Any, docker: Any) -> None:
    """The job's script is started as another user, who may use Docker."""
    run = toy_docker.run(framework={"output": True})
    work = toy_docker.work(run["run_id"])
    script = work / "job.sh"
    for left in ("model.bin", "logs/train.0.0.log"):
        (work / left).unlink()
    docker.socket.chmod(0o666)
    temporary = Path(tempfile.gettempdir())
    for folder in (each for each in (work, *work.parents) if temporary in each.parents):
        folder.chmod(0o777)
    for path in (*work.rglob("*"), *toy_docker.folder.glob("*")):
        os.chown(path, NOBODY, NOBODY)
    done = subprocess.run(["bash", str(script)], user=NOBODY, group=NOBODY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for result in ("model.bin", "logs/train.0.0.log"):
        assert (work / result).stat().st_uid == NOBODY
