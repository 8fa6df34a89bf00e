"""Fixtures: runs of the toy framework, and the real parts, each started once."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts import docker as docker_parts
from parts import slurm as slurm_parts
from parts.deadline import DEADLINE_S
from parts.killer import Killer
from parts.sshd import SSHD, Sshd
from parts.toy import TINY_IMAGE, TOY, ContainerRuns, SlurmRuns, ToyRuns, end_processes_in, process_ids
from parts.wheels import EXAMPLES, PRODUCT, build

SHARED_PARTS = {"docker_session", "slurm_session", "sshd_session"}
REAL_PARTS = SHARED_PARTS | {"server", "podman_module", "enroot"}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups, and pytest deselects slow tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of real parts: slow without the marker smoke, and in one process if they share the part."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & REAL_PARTS and not item.get_closest_marker("smoke"):
            item.add_marker(pytest.mark.slow)
        if not item.get_closest_marker("xdist_group"):
            for part in SHARED_PARTS & fixtures:
                item.add_marker(pytest.mark.xdist_group(part))


@pytest.fixture(autouse=True)
def _nothing_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    if "tmp_path" not in request.fixturenames:
        yield
        return
    folder, older = request.getfixturevalue("tmp_path"), process_ids()
    yield
    end_processes_in(folder, older=older)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyRuns:
    """Return runs of the toy framework."""
    runs = ToyRuns(tmp_path)
    monkeypatch.syspath_prepend(str(TOY))
    monkeypatch.setenv("LLMB_HOME", str(runs.home))
    return runs


@pytest.fixture
def pass_hour(toy: ToyRuns, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes ``sleep 3600`` wait until a bash condition is true in its working directory.

    Local jobs measure their time limit of an hour with this command.
    """

    def install(condition: str) -> None:
        program, sleep = toy.folder / "bin/sleep", shutil.which("sleep")
        program.parent.mkdir()
        wait = f"until {condition}; do {sleep} 0.02; done"
        program.write_text(f'#!/bin/bash\n[ "$*" = 3600 ] || exec {sleep} "$@"\n{wait}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return install


@pytest.fixture(scope="module")
def toy_class() -> type[ToyRuns]:
    """Return the class of `toy`, for tests with several homes."""
    return ToyRuns


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build a wheel of every distribution, once for all processes of the tests. Return the wheels by folder name."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "wheels"
    return build([*PRODUCT, *EXAMPLES], folder)


@pytest.fixture(scope="session")
def maxtext_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one home for all trainings of MaxText on this machine, so that llmb creates their environment once."""
    return tmp_path_factory.mktemp("maxtext")


@pytest.fixture(scope="session")
def sshd_session() -> Iterator[Sshd]:
    """Start an SSH server for all tests."""
    if SSHD is None:
        pytest.skip("sshd is not installed")
    with Sshd() as server:
        yield server


@pytest.fixture
def sshd(sshd_session: Sshd, monkeypatch: pytest.MonkeyPatch) -> Sshd:
    """Make this process a client of the SSH server."""
    for name, value in sshd_session.env.items():
        monkeypatch.setenv(name, value)
    return sshd_session


@pytest.fixture
def server() -> Iterator[Sshd]:
    """Start a server for one test, which may change its files."""
    with Sshd() as server:
        yield server


@pytest.fixture
def start_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Sshd]]:
    """Return a function that starts a server with other settings, and makes this process its client."""
    with contextlib.ExitStack() as servers:

        def start(**arguments: Any) -> Sshd:
            server = servers.enter_context(Sshd(**arguments))
            for name, value in server.env.items():
                monkeypatch.setenv(name, value)
            return server

        yield start


@pytest.fixture
def client(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Sshd:
    """Make this process a client of the server of one test."""
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def connect() -> Iterator[Callable[[str], Any]]:
    """Return a function that opens hosts, which are closed after the test."""
    from llmb.hosts.ssh.host import SshHost

    made: list[SshHost] = []

    def make(name: str = "cluster") -> SshHost:
        made.append(SshHost(name))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def slurm_session() -> Iterator[slurm_parts.Cluster]:
    """Start a Slurm cluster with accounting for all tests."""
    if lacking := slurm_parts.missing():
        pytest.skip(lacking)
    with slurm_parts.Cluster() as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm_session: slurm_parts.Cluster, monkeypatch: pytest.MonkeyPatch) -> slurm_parts.Cluster:
    """Make this process, and the processes that it starts, clients of the Slurm cluster."""
    for name, value in slurm_session.env.items():
        monkeypatch.setenv(name, value)
    return slurm_session


@pytest.fixture
def toy_slurm(tmp_path: Path, slurm: slurm_parts.Cluster, monkeypatch: pytest.MonkeyPatch) -> SlurmRuns:
    """Return runs of the toy framework on the Slurm cluster. They wait for its accounting however long it lags."""
    runs = SlurmRuns(tmp_path, slurm)
    monkeypatch.setattr("llmb.drive.finalize.attempt_history.HISTORY_LIMIT_S", DEADLINE_S)
    monkeypatch.syspath_prepend(str(TOY))
    monkeypatch.setenv("LLMB_HOME", str(runs.home))
    return runs


@pytest.fixture
def write_target() -> Callable[..., None]:
    """Return a function that writes a target, with these keys, as the user's targets file."""

    def write(name: str, **table: Any) -> None:
        file = Path(os.environ["XDG_CONFIG_HOME"], "llmb", "targets.toml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(tomli_w.dumps({name: table}))

    return write


@pytest.fixture(scope="session")
def docker_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker_parts.Docker]:
    """Start a Docker engine with a tiny image for all tests."""
    if lacking := docker_parts.missing():
        pytest.skip(lacking)
    root = tmp_path_factory.mktemp("image")
    docker_parts.write_tiny_root(root, {"bin/python3": "#!/bin/sh\nexec tail /dev/zero\n"})  # uses up the memory
    with docker_parts.Docker(live_restore=True) as engine:
        engine.import_image(root, TINY_IMAGE, "VOLUME /scratch", 'ENTRYPOINT ["/bin/false"]', "ENV PYTHONPATH=/image")
        yield engine


@pytest.fixture
def docker(docker_session: docker_parts.Docker, monkeypatch: pytest.MonkeyPatch) -> docker_parts.Docker:
    """Make this process, and the processes that it starts, clients of the Docker engine."""
    for name, value in docker_session.env.items():
        monkeypatch.setenv(name, value)
    return docker_session


@pytest.fixture
def toy_docker(tmp_path: Path, docker: docker_parts.Docker, monkeypatch: pytest.MonkeyPatch) -> Iterator[ContainerRuns]:
    """Return runs of the toy framework in Docker. Fail if a run leaves anything behind."""
    monkeypatch.syspath_prepend(str(TOY))
    runs = ContainerRuns(tmp_path, TINY_IMAGE)
    monkeypatch.setenv("LLMB_HOME", str(runs.home))
    yield runs
    assert docker.leftovers == []


@pytest.fixture(scope="module")
def killer(toy_class: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killer]:
    """Return a server whose processes of llmb are killed at a moment that the test chooses."""
    server = Killer(toy_class(tmp_path_factory.mktemp("killer")).env)
    yield server
    server.close()
