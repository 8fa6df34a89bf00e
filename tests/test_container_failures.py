"""The cause of failures of container engines that users reported in public, each text in our own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

START = "slurmstepd: error: pyxis: container start failed with error code: 1\n"
END = "slurmstepd: error: pyxis: couldn't start container\nsrun: error: n1: task 0: Exited with exit code 1\n"
LINE = "slurmstepd: error: pyxis:     "
PATHS = "enroot cannot write its directories on the node"

REPORTED = {
    # NVIDIA/enroot 140
    "mount without permission": (
        f"{START}{LINE}enroot-mount: failed to mount: /home/a/data at /run/x/data: Permission denied\n{END}",
        "a folder cannot be mounted in the container (/home/a/data)",
    ),
    "missing mount": (
        f"{START}{LINE}enroot-mount: failed to mount: /home/a/data at /run/x/data: No such file or directory\n{END}",
        "the source of a container mount does not exist on the node",
    ),
    # NVIDIA/pyxis 127
    "path without a slash": (
        f"pyxis: importing docker image: hello.sqsh\nslurmstepd: error: pyxis: failed to import docker image\n{END}",
        "the path of the image does not begin with / or ./ (hello.sqsh)",
    ),
    # NVIDIA/pyxis 121
    "cache of another user": (
        f"slurmstepd: error: pyxis: failed to import docker image\n{LINE}tar (child): /raid/cache/0b08: Cannot open: "
        "Permission denied\n",
        PATHS,
    ),
    # Linux, unshare(2)
    "limit of user namespaces": (
        f"{START}{LINE}enroot-nsenter: failed to create user namespace: No space left on device\n{END}",
        "the nodes allow no further user namespaces, which containers need",
    ),
    # Debian, Ubuntu 24.04
    "user namespaces of users": (
        f"{START}{LINE}enroot-nsenter: failed to create user namespace: Operation not permitted\n{END}",
        "the nodes do not allow users to start containers",
    ),
    # NVIDIA/enroot 247
    "AppArmor": (
        f"{START}{LINE}enroot-nsenter: failed to create user namespace: Permission denied\n{END}",
        "AppArmor does not allow users to start containers on the nodes",
    ),
    # Linux without CONFIG_USER_NS, unshare(2)
    "kernel without user namespaces": (
        f"{START}{LINE}enroot-nsenter: failed to create user namespace: Invalid argument\n{END}",
        "the nodes do not allow users to start containers",
    ),
    # NVIDIA/enroot 10
    "folder of the image": ("Could not create destination file: No such file or directory\n", PATHS),
}


RUNC = "runc create failed: unable to start container process: error during container init: "
CREATE = "docker: Error response from daemon: failed to create task for container: failed to create shim task: "

RLIMIT = "error setting rlimits for ready process: error setting rlimit type 8: operation not permitted"


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.mark.parametrize("name", REPORTED)
def test_a_reported_failure_has_its_cause(llmb: Llmb, tmp_path: Path, name: str) -> None:
    text, cause = REPORTED[name]
    log = tmp_path / "job.out"
    log.write_text(text)

    assert llmb("parse", log, "--framework", "megatron_bridge", "--json").json["failure"]["cause"] == cause


@pytest.mark.parametrize(
    ("error", "settings"),
    [
        ("No space left on device", ["user.max_user_namespaces=65536"]),
        (
            "Operation not permitted",
            ["kernel.unprivileged_userns_clone=1", "kernel.apparmor_restrict_unprivileged_userns=0"],
        ),
        ("Permission denied", ["kernel.apparmor_restrict_unprivileged_userns=0"]),
        ("Invalid argument", []),
    ],
)
def test_the_remedy_names_the_setting_that_forbids_a_user_namespace(
    llmb: Llmb, tmp_path: Path, error: str, settings: list[str]
) -> None:
    log = tmp_path / "job.out"
    log.write_text(f"{START}{LINE}enroot-nsenter: failed to create user namespace: {error}\n{END}")

    remedy = llmb("parse", log, "--framework", "megatron_bridge", "--json").json["failure"]["remedy"]
    assert re.findall(r"sysctl -w ([\w.=]+)", remedy) == settings


@pytest.mark.parametrize(
    "text",
    [
        f"{CREATE}{RUNC}{RLIMIT}: unknown.",
        f"Error: runc: {RUNC}{RLIMIT}: OCI permission denied",
        "Error: crun: setrlimit `RLIMIT_MEMLOCK`: Operation not permitted: OCI permission denied",
    ],
    ids=["Docker", "Podman with runc", "Podman"],
)
def test_limits_that_the_machine_does_not_allow_have_cause_and_remedy(llmb: Llmb, tmp_path: Path, text: str) -> None:
    log = tmp_path / "out.log"
    log.write_text(f"{text}\n\nRun 'docker run --help' for more information\n")

    failure = llmb("parse", log, "--framework", "megatron_bridge", "--json").json["failure"]
    assert failure["cause"] == "the machine does not allow the limits of the container (ulimits)"
    assert failure["remedy"].startswith("set `ulimits = {}` in [target.container]")


GPU_ERRORS = [
    ("initialization error: driver rpc error: timed out", "the GPU driver does not respond in time"),
    ("initialization error: nvml error: driver not loaded", "the GPU driver is not loaded"),
    (
        "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file",
        "a library of the GPU driver is missing on the node",
    ),
    ("initialization error: nvml error: unknown error", "the GPU driver does not work in containers"),
    ("requirement error: unsatisfied condition: cuda>=13.0", "the GPU driver is too old for the image"),
    ("device error: 7: unknown device", "a GPU that the job requests does not exist"),
    (
        "mount error: file creation failed: /m/usr/lib/libnvidia-ml.so.1: file exists",
        "the image contains a file of a GPU driver, which containers get from the node",
    ),
    (
        "mount error: file creation failed: /m/dev/nvidia-uvm: operation not permitted",
        "the GPU driver cannot be added to the container",
    ),
    (
        "mount error: failed to add device rules: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted",
        "a rootless container engine cannot give GPUs to containers through control groups",
    ),
    (
        "mount error: mount operation failed: /m/proc: no such file or directory",
        "the GPU driver cannot be added to the container",
    ),
    (
        "ldcache error: process /sbin/ldconfig.real failed with error code: 1",
        "the GPU driver cannot be added to the container",
    ),
]


@pytest.mark.parametrize(("error", "cause"), GPU_ERRORS)
@pytest.mark.parametrize("engine", ["docker", "pyxis"])
def test_an_error_of_the_gpu_runtime_has_its_cause(
    llmb: Llmb, tmp_path: Path, engine: str, error: str, cause: str
) -> None:
    log = tmp_path / "out.log"
    error_line = f"nvidia-container-cli: {error}"
    hook = f"{LINE}[ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1\n"
    log.write_text(
        f"{CREATE}{RUNC}error running hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n"
        f"{error_line}: unknown\n"
        if engine == "docker"
        else f"{START}{LINE}{error_line}\n{hook}{END}"
    )

    assert llmb("parse", log, "--framework", "megatron_bridge", "--json").json["failure"]["cause"] == cause


def test_an_image_of_a_registry_is_no_path(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    log.write_text("pyxis: importing docker image: registry.org#team/x.sqsh\npyxis: imported docker image\n")

    assert llmb("parse", log, "--framework", "megatron_bridge", "--json").json["failure"] is None
