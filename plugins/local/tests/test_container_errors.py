"""Errors of container engines, and the remedies that they get."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

import pytest

from llmb import FrozenMap, resource_text
from llmb_local.gpus import GPU_REMEDIES


def explain(
    image: str,
    output: str,
    engine: str = "docker",
    kernel_settings: Mapping[str, int] = FrozenMap(),
    **env: str,
) -> str:
    script = resource_text("llmb_local", "runtimes/container_errors.sh")
    cases = " ".join(f"{name}) echo {value} ;;" for name, value in kernel_settings.items())
    script += f"\nkernel_setting() {{ case $1 in {cases} *) return 1 ;; esac }}"
    words = ["bash", "-c", f'set -u\n{script}\nengine=$3 image=$1\nexplain "$2"', "bash", image, output, engine]
    return subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | env).stdout


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("nvcr.io/nvidia/nemo:25.11", "`docker login nvcr.io`"),
        ("localhost:5000/tiny:1", "`docker login localhost:5000`"),
        ("localhost/tiny:1", "`docker login localhost`"),
        ("mycompany/train:1", "`docker login`"),
        ("mycompany/a.b/train:1", "`docker login`"),
        ("ubuntu:22.04", "`docker login`"),
    ],
)
def test_a_denied_image_names_the_registry_to_log_in_to(image: str, command: str) -> None:
    assert command in explain(image, "unauthorized: authentication required")


def test_an_image_whose_registry_podman_does_not_know_gets_the_one_of_docker() -> None:
    error = 'Error: short-name "me/train:1" did not resolve to an alias and no unqualified-search registries'
    assert 'set `image = "docker.io/me/train:1"` in [workload]' in explain("me/train:1", error, "podman")


@pytest.mark.parametrize(
    ("error", "option"),
    [("unknown flag: --gpus", "--gpus"), ("unknown shorthand flag: 'x' in -x", "'x' in -x")],
)
def test_an_unknown_option_is_named_without_the_usage_of_the_engine(error: str, option: str) -> None:
    usage = "\n\nUsage:  docker run [OPTIONS] IMAGE [COMMAND] [ARG...]\n\nRun 'docker run --help' for more information"
    remedy = "remove it from `options` in [target.container], or update docker"
    assert explain("ubuntu", error + usage) == f"docker does not know {option}; {remedy}\n"


@pytest.mark.parametrize(
    "error",
    [
        "Cannot connect to the Docker daemon at {}. Is the docker daemon running?",
        "failed to connect to the docker API at {}; check if the path is correct and if the daemon is running",  # 29
    ],
)
@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("unix:///var/run/docker.sock", "start it with `sudo systemctl start docker`"),
        (
            "unix:///run/user/7/docker.sock",
            "start the one at unix:///run/user/7/docker.sock, or correct DOCKER_HOST or the context that "
            "`docker context ls` marks",
        ),
    ],
)
def test_the_remedy_of_a_missing_daemon_suits_its_address(error: str, address: str, remedy: str) -> None:
    assert explain("", error.format(address)) == f"the Docker daemon is not running; {remedy}\n"


@pytest.mark.parametrize(
    ("engine", "error"),
    [
        (
            "docker",  # 28 with the image store of containerd
            "no matching manifest for linux/amd64 in the manifest list entries: no match for platform in manifest: not "
            "found",
        ),
        ("podman", 'Error: no image found in image index for architecture amd64, variant "", OS linux'),
    ],
)
def test_an_image_for_other_cpus_is_not_taken_for_a_missing_one(engine: str, error: str) -> None:
    machine = os.uname().machine
    assert explain("train:1", error, engine) == (
        f"the image train:1 does not support the CPU of this machine; use an image for {machine}: {error}\n"
    )


@pytest.mark.parametrize(
    "error",
    [
        'Current context "lab" is not found on the file system',
        "error during connect: ssh: connect to host lab port 22: Connection refused",
    ],
)
def test_the_probe_takes_no_error_for_that_of_an_image(error: str) -> None:
    assert explain("", error) == f"{error}\n"


def test_an_unknown_error_is_shown_without_the_id_of_the_container_and_the_usage() -> None:
    error = "docker: Error response from daemon: Minimum memory limit allowed is 6MB"
    for usage in ("Run 'docker run --help' for more information", "See 'docker run --help'."):
        assert explain("ubuntu", f"{64 * 'a'}\n{error}\n\n{usage}") == f"{error}\n"


@pytest.mark.parametrize(
    ("engine", "error"),
    [
        ("docker", "docker: Error response from daemon: network fabric not found"),
        ("podman", "Error: unable to find network with name or ID fabric: network not found"),
    ],
)
def test_a_missing_network_is_not_taken_for_a_missing_image(engine: str, error: str) -> None:
    remedy = f'use one that `{engine} network ls` lists, or "host"'
    assert explain("ubuntu", error, engine) == f"the network in target.container.network does not exist; {remedy}\n"


@pytest.mark.parametrize(("engine", "other"), [("docker", "podman"), ("podman", "docker"), ("enroot", "podman")])
def test_a_missing_engine_proposes_another_one(engine: str, other: str) -> None:
    assert f'set `runtime = "{other}"`' in explain("ubuntu", f"bash: {engine}: command not found", engine)


INIT = "error during container init: error running prestart hook #0: exit status 1, stderr: Auto-detected mode as "
NVML = "initialization error: nvml error: "
ROOT = "/var/lib/docker/overlay2/1f/merged"


@pytest.mark.parametrize(
    ("error", "explained"),
    [
        (f"{NVML}driver not loaded", "the NVIDIA driver is not loaded; run `sudo modprobe nvidia`"),
        (f"{NVML}driver/library version mismatch", "the NVIDIA driver reports an error; check `nvidia-smi`"),
        ("initialization error: driver rpc error: timed out", "the NVIDIA driver does not respond in time; keep it"),
        (
            "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such "
            "file or directory",
            "a library of the NVIDIA driver is missing on this machine; install the driver",
        ),
        ("detection error: nvml error: gpu is lost", "the NVIDIA driver reports an error; check `nvidia-smi`"),
        ("device error: 7: unknown device", "a GPU of the job does not exist; check"),
        (
            "requirement error: unsatisfied condition: cuda>=13.0, please update your driver to a newer version, or "
            "use an earlier cuda container",
            "the image does not support the GPU or its driver; use an older image",
        ),
        (
            f"mount error: file creation failed: {ROOT}/usr/lib/libnvidia-ml.so.1: file exists",
            "the image contains a file of an NVIDIA driver",
        ),
        (
            "mount error: failed to add device rules: unable to find any existing device filters attached to the "
            "cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted",
            "a rootless docker cannot give GPUs to containers through control groups; run",
        ),
        (
            f"mount error: mount operation failed: {ROOT}/usr/lib/firmware/nvidia: operation not permitted",
            "the NVIDIA driver cannot be mounted in the container; update libnvidia-container-tools, or log the steps",
        ),
        (
            "ldcache error: process /sbin/ldconfig.real failed with error code: 1",
            "the libraries of the NVIDIA driver cannot be registered in the container; update",
        ),
        (
            "container error: cgroup subsystem devices not found",
            "the NVIDIA driver cannot be added to the container; log the steps with `sudo nvidia-ctk config",
        ),
    ],
)
def test_an_error_of_the_gpu_runtime_is_that_of_its_step(error: str, explained: str) -> None:
    output = f"{INIT}'legacy'\nnvidia-container-cli: {error}: unknown\n\nRun 'docker run --help' for more information"
    of_docker = explain("ubuntu", output)
    assert of_docker.startswith(explained)
    assert of_docker.endswith(f": {error}\n")


def test_an_error_of_the_gpu_runtime_in_enroot_says_how_enroot_logs_its_steps() -> None:
    output = (
        "nvidia-container-cli: mount error: stat failed: /x: no such file or directory\n[ERROR] 98-nvidia.sh exited"
    )
    explained = explain("ubuntu", output, "enroot")
    assert "log the steps with `export NVIDIA_DEBUG_LOG=1`: mount error: stat failed: /x: no such file" in explained
    assert "[ERROR]" not in explained


def test_a_long_message_is_cut_between_words() -> None:
    words = " ".join(f"word{number}" for number in range(100))
    first = explain("ubuntu", f"nvidia-container-cli: mount error: {words}").partition("mount error: ")[2].split()
    last = explain("ubuntu", f"\n{words}\n").split()
    assert first == [*words.split()[: len(first) - 1], "..."]
    assert last == ["...", *words.split()[1 - len(last) :]]
    assert len(" ".join(last)) <= len("... ") + 300


USERNS = "enroot-nsenter: failed to create user namespace: "
CLONE = "unprivileged_userns_clone"
APPARMOR = "apparmor_restrict_unprivileged_userns"


@pytest.mark.parametrize(
    ("error", "settings", "remedy"),
    [
        ("No space left on device", {CLONE: 1, APPARMOR: 0}, "user.max_user_namespaces=65536`"),
        ("Operation not permitted", {CLONE: 0}, f"kernel.{CLONE}=1`"),
        ("Operation not permitted", {CLONE: 0, APPARMOR: 1}, f"kernel.{CLONE}=1`"),
        ("Operation not permitted", {CLONE: 1, APPARMOR: 1}, f"kernel.{APPARMOR}=0`, or install enroot's AppArmor"),
        ("Permission denied", {APPARMOR: 1}, f"kernel.{APPARMOR}=0`, or install enroot's AppArmor"),
        ("Operation not permitted", {}, "`grep . /proc/sys/kernel/*userns*`"),
    ],
)
def test_a_rejected_user_namespace_names_the_setting_that_forbids_it(
    error: str, settings: dict[str, int], remedy: str
) -> None:
    assert remedy in explain("ubuntu", f"{USERNS}{error}\n", "enroot", settings)


@pytest.mark.parametrize(
    ("program", "package"), [("curl", "curl"), ("mksquashfs", "squashfs-tools"), ("unsquashfs", "squashfs-tools")]
)
def test_a_missing_program_that_enroot_needs_is_named(program: str, package: str) -> None:
    explained = explain("ubuntu", f"[ERROR] Command not found: {program}", "enroot")
    assert explained == (
        f"{program}, which enroot needs, is not installed on this machine; "
        f"install {package} with the machine's package manager\n"
    )


def test_a_program_that_the_image_may_lack_is_not_taken_for_the_engine() -> None:
    explained = explain("ubuntu", "/r/job.sh: line 7: setsid: command not found", "enroot")
    assert explained == "setsid is not installed on this machine or in the image ubuntu; install it there\n"


@pytest.mark.parametrize(
    ("engine", "output", "remedy"),
    [
        (
            "docker",
            'could not select device driver "" with capabilities: [[gpu]]',
            "`sudo nvidia-ctk runtime configure`",
        ),
        ("podman", "unresolvable CDI devices nvidia.com/gpu=0", "`sudo nvidia-ctk cdi generate --output=/etc/cdi/"),
        ("enroot", "[ERROR] Command not found: nvidia-container-cli", "install libnvidia-container-tools"),
    ],
)
def test_missing_gpu_access_has_the_remedy_of_its_engine(engine: str, output: str, remedy: str) -> None:
    assert remedy in explain("ubuntu", output, engine)
    assert remedy in GPU_REMEDIES[engine]


@pytest.mark.parametrize(
    ("env", "cache"),
    [
        ({"ENROOT_CACHE_PATH": "/raid/my cache"}, r"/raid/my\ cache"),
        ({"ENROOT_CACHE_PATH": "", "XDG_CACHE_HOME": "/raid"}, "/raid/enroot"),
        ({"ENROOT_CACHE_PATH": "", "XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/enroot"),
    ],
)
def test_a_full_disk_names_the_cache_of_enroot_and_the_folder_of_the_image(env: dict[str, str], cache: str) -> None:
    explained = explain("ubuntu", "no space left on device", "enroot", **env, file="/work/images/x.sqsh")
    assert f"`rm -rf {cache}`" in explained
    assert "`df -h /work/images`" in explained
