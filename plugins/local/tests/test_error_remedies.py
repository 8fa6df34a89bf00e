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
    script = resource_text("llmb_local", "runtimes/error_remedies.sh")
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


@pytest.mark.parametrize(("engine", "other"), [("docker", "podman"), ("podman", "docker"), ("enroot", "podman")])
def test_a_missing_engine_proposes_another_one(engine: str, other: str) -> None:
    assert f'set `runtime = "{other}"`' in explain("ubuntu", f"bash: {engine}: command not found", engine)


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
