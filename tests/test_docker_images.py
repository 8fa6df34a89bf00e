"""Images on this machine: pulls, and errors of the container engine."""

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
from parts.deadline import DEADLINE_S
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
    """Push the tiny image, changed by a command, to the registry, remove it here, and return its name."""
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
    """Return the provenance of the record."""
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


def test_a_pinned_image_is_that_of_its_digest_even_if_its_tag_has_moved(
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
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert provenance(Path(run["directory"]))["image_digest"] == digest
    docker("image", "rm", digest)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("{registry}/toy/missing:1", "the image {registry}/toy/missing:1 does not exist; set `image = "),
        ("No-Image", "docker image No-Image could not be created: invalid image name; set `image = "),
        ("127.0.0.1:9/toy/tiny:1", "cannot reach the registry of 127.0.0.1:9/toy/tiny:1"),
        ("registry.invalid/toy/tiny:1", "cannot reach the registry of registry.invalid/toy/tiny:1"),
    ],
)
def test_a_failed_pull_is_one_line(toy_docker: Any, registry: Registry, name: str, cause: str) -> None:
    found = failure(toy_docker.run(workload={"image": name.format(registry=registry.address)}))
    assert cause.format(registry=registry.address) in found


def test_a_registry_that_requires_a_login_is_reported(toy_docker: Any, docker: Any) -> None:
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed")
    with Registry(login=("me", "secret")) as registry:
        name = push(docker, registry, toy_docker.image)
        cause = failure(toy_docker.run(workload={"image": name}))
        assert f"denied access, or the image does not exist; log in with `docker login {registry.address}`" in cause


def test_a_missing_mount_source_is_an_error_and_is_not_created(toy_docker: Any, tmp_path: Path) -> None:
    run = toy_docker.run(mounts={str(tmp_path / "missing"): "/data"})
    assert "a path of [mounts] does not exist; create it, or correct [mounts]" in run["reason"]
    assert failure(run) == "the source of a container mount does not exist on the node"
    assert run["failure"]["evidence"].endswith(f"bind source path does not exist: {tmp_path}/missing")
    assert not (tmp_path / "missing").exists()


def test_a_missing_nvidia_runtime_is_reported(toy_docker: Any) -> None:
    options = {"container": {"ulimits": {}, "options": ["--gpus", "all"]}}
    run = toy_docker.run(target=options)
    assert "install nvidia-container-toolkit" in run["reason"]
    assert failure(run) == "the container engine has no GPU runtime"
    assert run["failure"]["remedy"].endswith("run `sudo nvidia-ctk runtime configure`, and restart Docker")
    assert "could not select device driver" in toy_docker.llmb("logs", run["run_id"]).stdout


def test_an_image_without_bash_is_reported(toy_docker: Any, docker: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/file").touch()
    docker.import_image(tmp_path / "empty", "llmb-empty:1")
    assert "the image has no bash" in failure(toy_docker.run(workload={"image": "llmb-empty:1"}))
    docker("image", "rm", "llmb-empty:1")


def test_an_image_for_another_cpu_is_reported(toy_docker: Any, docker: Any, tmp_path: Path) -> None:
    (tmp_path / "foreign/bin").mkdir(parents=True)
    for program in ("bash", "sh"):
        (tmp_path / "foreign/bin" / program).write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
        (tmp_path / "foreign/bin" / program).chmod(0o755)
    docker.import_image(tmp_path / "foreign", "llmb-foreign:1", "ENV PATH=/bin")
    run = toy_docker.run(workload={"image": "llmb-foreign:1"})
    assert failure(run) == "a program was built for another kind of CPU"
    assert "has no bash" not in run["reason"]
    docker("image", "rm", "llmb-foreign:1")


def test_a_full_disk_is_reported(
    toy_docker: Any, docker: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = ("dd", "if=/dev/urandom", "of=/large", "bs=1048576", "count=48")
    name = push(docker, registry, toy_docker.image, *large)
    with Docker(disk_mb=32) as small:
        for key, value in small.env.items():
            monkeypatch.setenv(key, value)
        cause = failure(toy_docker.run(workload={"image": name}))
    assert "the disk on which docker keeps its images is full" in cause


def test_the_progress_of_a_pull_is_shown(toy_docker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in prints recorded output of Docker and waits in the middle of the pull."""
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
    running.communicate(timeout=DEADLINE_S)


def test_a_run_is_not_started_without_a_daemon(toy_docker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    done = toy_docker.llmb("run", toy_docker.spec(target={"runtime": "docker"}))
    assert done.returncode == 4
    assert done.stderr.startswith(
        "llmb: the Docker daemon is not running; start the one at unix:///nowhere/docker.sock, or correct DOCKER_HOST"
    )
    assert toy_docker.records == []


def test_a_missing_permission_for_the_socket_is_reported(docker: Any) -> None:
    """Run the probe as a user who is not in the group docker."""
    from llmb import Target
    from llmb_local.options import LocalOptions
    from llmb_local.plugin import Local

    docker.socket.chmod(0o660)
    script = Local().probe(Target(scheduler="local", workdir="/work", options=LocalOptions(runtime="docker")))
    done = subprocess.run(["bash", "-c", script], user=NOBODY, cwd="/", capture_output=True, text=True)
    assert "docker.error=no permission for Docker's socket; run `sudo usermod -aG docker $USER`" in done.stdout


def test_files_belong_to_the_user_of_the_job(toy_docker: Any, docker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the script of the job as another user with access to Docker, who cannot enter the folders of pytest."""
    with tempfile.TemporaryDirectory(prefix="llmb-nobody-") as folder:
        runs = type(toy_docker)(Path(folder), toy_docker.image)
        monkeypatch.setenv("LLMB_HOME", str(runs.home))
        work = runs.work(runs.run(framework={"output": True})["run_id"])
        results = [work / "model.bin", work / "logs/train.0.0.log"]
        for result in results:
            result.unlink()
        docker.socket.chmod(0o666)
        for path in (runs.folder, *runs.folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        script = ["bash", str(work / "job.sh")]
        done = subprocess.run(script, user=NOBODY, group=NOBODY, cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert [result.stat().st_uid for result in results] == [NOBODY, NOBODY]
