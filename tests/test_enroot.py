"""Runs of the toy framework in enroot, with a stand-in that behaves like enroot 4.1.2."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.enroot import SQUASHFS, Enroot
from parts.toy import await_run, job_script_of, supervisor_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="its binds are real, and need root")

IMAGE = "nvcr.io/nvidia/nemo:24.09"


@pytest.fixture
def enroot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Enroot:
    (tmp_path / "enroot").mkdir()
    stand_in = Enroot(tmp_path / "enroot")
    stand_in.publish("docker://nvcr.io#nvidia/nemo:24.09")
    monkeypatch.setenv("PATH", f"{stand_in.bin}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    return stand_in


@pytest.fixture
def runs(toy: Any, enroot: Enroot) -> Iterator[Any]:
    """Return a toy whose runs use enroot, and check afterwards that no container is left."""
    yield toy
    assert enroot.containers == []


def tables(**more: dict[str, Any]) -> dict[str, dict[str, Any]]:
    usual = {"workload": {"image": IMAGE}, "target": {"runtime": "enroot"}}
    return {**more, **{name: keys | more.get(name, {}) for name, keys in usual.items()}}


def start_at_gate(toy: Any, **more: dict[str, Any]) -> tuple[Any, str]:
    framework = {"gate": str(toy.gate)} | more.pop("framework", {})
    running = toy.start("run", toy.spec(**tables(framework=framework, **more)), "--json")
    toy.wait_for_journal("begin")
    return running, toy.wait_for_state("running")


@pytest.mark.smoke
def test_an_image_is_imported_once_and_a_run_leaves_nothing_but_its_record(runs: Any, enroot: Enroot) -> None:
    for _ in range(2):
        run = runs.run(**tables(workload={"gpus": 2}, framework={"warm_up": True, "output": True}))
        assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
        assert runs.steps_of(Path(run["directory"])) == [1, 2, 3, 4, 5]
    assert enroot.imports == ["docker://nvcr.io#nvidia/nemo:24.09"]  # the registry is followed by #
    provenance = tomllib.loads((Path(run["directory"]) / "run.toml").read_text())["provenance"]
    assert provenance["image"] == IMAGE
    assert provenance["image_sha256"] == hashlib.sha256(SQUASHFS).hexdigest()


@pytest.mark.parametrize("tag", ["", ":24.09"])
def test_an_image_is_imported_by_its_digest(runs: Any, enroot: Enroot, tag: str) -> None:
    by_digest = (
        f"docker://nvcr.io#nvidia/nemo:sha256:{64 * '0'}"  # instead of a tag, because enroot 3 does not support @
    )
    enroot.publish(by_digest)
    run = runs.run(**tables(workload={"image": f"nvcr.io/nvidia/nemo{tag}@sha256:{64 * '0'}"}))
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert enroot.imports == [by_digest]


def test_variables_of_the_job_override_the_image_and_those_override_the_machine(
    runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{os.environ.get('PYTHONPATH', '')}:/machine")
    run = runs.run(**tables(framework={"dump": True}))
    assert "PYTHONPATH=/image" in (runs.work(run["run_id"]) / "env.0").read_text().split("\0")
    run = runs.run(**tables(framework={"dump": True}, env={"PYTHONPATH": "/job"}))
    assert "PYTHONPATH=/job" in (runs.work(run["run_id"]) / "env.0").read_text().split("\0")


@pytest.mark.parametrize(
    ("image", "cause"),
    [
        ("nvcr.io/nvidia/missing:1", "the image nvcr.io/nvidia/missing:1 does not exist; set `image = "),
        ("registry.invalid/x:1", "cannot reach the registry of registry.invalid/x:1"),
        ("someone/private:1", "the registry of someone/private:1 denied access, or the image does not exist"),
    ],
)
def test_a_failed_import_is_one_line(runs: Any, image: str, cause: str) -> None:
    run = runs.run(**tables(workload={"image": image}))
    assert run["state"] == "failed"
    assert cause in run["failure"]["cause"]


def test_an_image_of_docker_is_imported_from_docker(runs: Any, enroot: Enroot) -> None:
    enroot.add_docker(IMAGE)
    assert runs.run(**tables())["state"] == "completed"
    assert enroot.imports == ["dockerd://sha256:ab"]


def test_an_image_of_docker_without_a_command_gets_one(runs: Any, enroot: Enroot) -> None:
    enroot.add_docker(IMAGE, "echo 'Error response from daemon: No command specified' >&2; exit 1")
    cause = runs.run(**tables())["failure"]["cause"]
    assert f"the image {IMAGE} has no command" in cause
    assert f"`docker commit --change 'CMD [\"bash\"]' $(docker create {IMAGE} bash) NAME:TAG`" in cause


@pytest.mark.smoke
def test_a_killed_import_is_repeated(runs: Any, enroot: Enroot) -> None:
    (enroot.state / "gate").touch()
    running = runs.start("run", runs.spec(**tables()), "--json")
    runs.wait(lambda: enroot.imports)
    [task] = (runs.home / "work/tasks").iterdir()
    images = runs.home / "work/cache/enroot"
    of_a_dead_import = images / "other.sqsh.node1-17.partial"
    of_a_dead_import.touch()
    (images / "other.sqsh.lock").touch()
    os.kill(supervisor_of(task), signal.SIGKILL)
    runs.wait(lambda: len(enroot.imports) == 2)
    (enroot.state / "gate").unlink()
    assert await_run(running)["state"] == "completed"
    assert [each for each in images.iterdir() if each.suffix not in (".lock", ".sqsh", ".sha256")] == []


@pytest.mark.parametrize(
    ("content", "status", "cause"),
    [(SQUASHFS, 3, "[INFO] Fetching image manifest"), (SQUASHFS[:-1], 0, "did not produce a complete squashfs file")],
    ids=["enroot failed", "cut off"],
)
def test_an_incomplete_image_is_discarded_and_imported_again(
    runs: Any, enroot: Enroot, content: bytes, status: int, cause: str
) -> None:
    enroot.import_ends(content, status)
    run = runs.run(**tables())
    assert run["state"] == "failed"
    assert cause in run["failure"]["cause"]
    enroot.import_ends(SQUASHFS, 0)
    assert runs.run(**tables())["state"] == "completed"


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        ({"end": "exit 3", "end_step": 2}, "phase train, rank 0: exit code 3"),
        ({"end": "kill 11", "end_step": 2}, "phase train, rank 0: killed by signal 11 (exit code 139)"),
    ],
)
def test_the_cause_names_the_failed_rank(runs: Any, behaviour: dict[str, Any], cause: str) -> None:
    run = runs.run(**tables(framework=behaviour))
    assert run["state"] == "failed"
    assert run["failure"]["cause"].startswith(cause)


def test_a_read_only_mount_cannot_be_written(runs: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "seen").mkdir()
    framework = {"journal": str(tmp_path / "seen/journal")}
    runs.run(**tables(framework=framework, mounts={str(tmp_path / "data"): f"{tmp_path / 'seen'}:ro"}))
    assert not (tmp_path / "data/journal").exists()
    run = runs.run(**tables(framework=framework, mounts={str(tmp_path / "data"): str(tmp_path / "seen")}))
    assert run["state"] == "completed"
    assert (tmp_path / "data/journal").exists()


def test_a_path_that_enroot_cannot_mount_is_rejected(runs: Any) -> None:
    done = runs.llmb("run", runs.spec(**tables(mounts={"/a b": "/x"})))
    assert done.returncode == 2
    assert '"/a b" contains a character that enroot' in done.stderr


def test_missing_nvidia_tools_are_reported(runs: Any) -> None:
    options = {"options": ["--env", "NVIDIA_VISIBLE_DEVICES=0"]}
    run = runs.run(**tables(target={"runtime": "enroot", "container": options}))
    assert "enroot cannot give GPUs to containers; install libnvidia-container-tools" in run["reason"]
    assert run["failure"]["cause"] == "a program that enroot needs is missing on the node (nvidia-container-cli)"
    printed = runs.llmb("logs", run["run_id"]).stdout
    assert printed == f"{run['failure']['evidence']}\n", "the container was removed"


@pytest.mark.parametrize(
    ("of_image", "more", "capabilities"),
    [
        ("", {}, "compute,utility"),
        ("NVIDIA_DRIVER_CAPABILITIES=", {}, "compute,utility"),
        ("NVIDIA_DRIVER_CAPABILITIES=all", {}, "all"),
        ("NVIDIA_DRIVER_CAPABILITIES=all", {"env": {"NVIDIA_DRIVER_CAPABILITIES": "compute"}}, "compute"),
        ("", {"target": {"container": {"options": ["--env", "NVIDIA_DRIVER_CAPABILITIES=video"]}}}, "video"),
    ],
    ids=["nothing", "an empty value", "the image", "the job", "an option"],
)
def test_containers_get_cuda_unless_another_setting_says_what_they_get(
    runs: Any, enroot: Enroot, of_image: str, more: dict[str, Any], capabilities: str
) -> None:
    enroot.add_gpu()
    enroot.set_in_image(of_image)
    run = runs.run(**tables(framework={"needs_gpus": True}, **more))
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert enroot.capabilities == [capabilities]


@pytest.mark.slow
@pytest.mark.parametrize("ignore_term", [False, True])
def test_cancel_ends_all_processes(runs: Any, ignore_term: bool) -> None:
    running, run_id = start_at_gate(runs, framework={"ignore_term": ignore_term})
    [cancelled] = runs.runs("cancel", run_id)
    assert cancelled["state"] == "cancelled"
    assert await_run(running) == cancelled
    assert alive(runs.work(run_id)) == []


@pytest.mark.smoke
def test_a_killed_job_leaves_nothing_behind(runs: Any) -> None:
    running, run_id = start_at_gate(runs)
    os.kill(supervisor_of(runs.work(run_id)), signal.SIGKILL)
    assert await_run(running)["state"] == "lost"
    assert alive(runs.work(run_id)) == []


@pytest.mark.slow
def test_the_next_job_removes_the_container_of_a_killed_one(runs: Any) -> None:
    running, run_id = start_at_gate(runs)
    supervisor, script = supervisor_of(runs.work(run_id)), job_script_of(runs.work(run_id))
    running.kill()
    running.communicate()
    for pid in (supervisor, script):
        os.kill(pid, signal.SIGKILL)
    assert runs.run(**tables())["state"] == "completed"
    assert alive(runs.work(run_id)) == []


def alive(work: Path) -> list[Path]:
    """Return the processes of a job."""
    mark, found = f"LLMB_RUN_DIR={work}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(folder)
        except OSError:
            continue
    return found


def test_an_image_file_is_used_as_it_is(runs: Any, enroot: Enroot, tmp_path: Path) -> None:
    (tmp_path / "1.0.sqsh").write_bytes(SQUASHFS)
    (file := tmp_path / "own.sqsh").symlink_to("1.0.sqsh")
    for checksum in (None, 64 * "0"):
        if checksum:
            Path(f"{file}.sha256").write_text(f"{checksum}  own.sqsh\n")  # as sha256sum prints it
        run = runs.run(workload={"image": str(file)})
        assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
        provenance = tomllib.loads((Path(run["directory"]) / "run.toml").read_text())["provenance"]
        assert provenance["image"] == str(file)
        assert (provenance.get("image_sha256"), "image_modified" in provenance) == (checksum, checksum is None)
    assert enroot.imports == []


@pytest.mark.parametrize("content", [None, SQUASHFS[:-1]], ids=["missing", "cut off"])
def test_a_file_that_is_no_image_starts_no_job(runs: Any, tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "own.sqsh"
    if content:
        file.write_bytes(content)
    run = runs.run(workload={"image": str(file)})
    assert run["state"] == "failed"
    assert f"image file {file} does not exist on the target, or is incomplete" in run["failure"]["cause"]
    assert runs.journal() == []
    checks = runs.llmb("doctor", runs.spec(workload={"image": str(file)}), "--json")
    [check] = [each for each in json.loads(checks.stdout)["checks"] if each["name"] == f"image file {file}"]
    assert (check["ok"], check["detail"]) == (False, "does not exist on the target, or is incomplete")


def test_an_image_file_needs_enroot(runs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = runs.spec(workload={"image": "/own.sqsh"}, target={"runtime": "docker"})
    message = 'target.runtime: "docker" does not suit the recipe, which runs in the image file /own.sqsh'
    assert message in runs.llmb("run", spec).stderr
    monkeypatch.setenv("PATH", os.environ["PATH"].partition(":")[2])
    done = runs.llmb("run", runs.spec(workload={"image": "/own.sqsh"}))
    assert done.returncode == 4
    message = "the image file /own.sqsh needs enroot, which is not installed on this machine; install it"
    assert done.stderr == f"llmb: {message}\n"
