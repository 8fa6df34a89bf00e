"""GPUs and container engines of the machine, with a stand-in for nvidia-smi that prints recorded output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Environment, Image, Job, Phase, SpecError, Target, TargetError, is_gpu_of_type
from llmb.hosts.local_host import LocalHost
from llmb_local.gpus import parse_gpus
from llmb_local.options import LocalOptions
from llmb_local.plugin import Local

RECORDED = Path(__file__).parent / "nvidia-smi"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that installs a program on a PATH with only a few tools: no engine, no nvidia-smi."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("bash", "timeout", "tr", "head", "tail", "sed", "ls"):
        (folder / tool).symlink_to(next(p for p in (Path(f"/bin/{tool}"), Path(f"/usr/bin/{tool}")) if p.exists()))
    monkeypatch.setenv("PATH", str(folder))

    def install(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)

    return install


def install_nvidia_smi(programs: Any, recorded: str) -> None:
    """Install an nvidia-smi that prints the recorded output if it is called with the recorded arguments.

    With ``--id``, it prints only the GPUs with these indices.
    """
    query = "--query-gpu=index,name,memory.total,memory.used,driver_version --format=csv,noheader,nounits"
    programs(
        "nvidia-smi",
        f"""words=$*
        [ "${{words%% --id=*}}" = "{query}" ] && while read -r l; do
          case $words in *--id=*) [[ ,${{words#*--id=}}, = *,${{l%%,*}},* ]] || continue ;; esac
          echo "$l"
        done <{RECORDED / recorded}.csv""",
    )


def target(gpu_type: str = "h100", **options: Any) -> Target[LocalOptions]:
    return Target(scheduler="local", workdir="/work", options=LocalOptions(**options), gpu_types=(gpu_type,))


def probed(gpu_type: str = "h100", **options: Any) -> Target[LocalOptions]:
    """Return the target with the facts that its probe prints."""
    import attrs

    from llmb import FrozenMap

    unprobed = target(gpu_type, **options)
    done = LocalHost().run(Local().probe(unprobed))
    assert done.exit_code == 0, done.stderr
    return attrs.evolve(unprobed, facts=FrozenMap(line.split("=", 1) for line in done.stdout.splitlines()))


def job(gpus: int, image: str | None = None) -> Job:
    return Job(
        id="abcde-tiny",
        directory="/work/runs/abcde-tiny",
        phases=(Phase(name="train", command=("train",)),),
        nodes=1,
        tasks_per_node=gpus or 1,
        gpus_per_node=gpus,
        environment=Environment(base=Image(ref=image) if image else None),
        time_limit_s=60,
    )


def test_gpus_are_read_from_nvidia_smi(programs: Any) -> None:
    install_nvidia_smi(programs, "8-h100")
    found = parse_gpus(probed().facts)
    assert [gpu.index for gpu in found] == list(range(8))
    assert {(gpu.name, round(gpu.memory_gb), gpu.driver) for gpu in found} == {
        ("NVIDIA H100 80GB HBM3", 86, "550.54.15")
    }
    assert [gpu.index for gpu in found if gpu.used_gb > 1] == [3]


def test_unknown_gpu_memory_is_no_error(programs: Any) -> None:
    install_nvidia_smi(programs, "1-shared-memory")
    assert [(gpu.name, gpu.memory_gb) for gpu in parse_gpus(probed().facts)] == [("NVIDIA GB10", 0.0)]


@pytest.mark.parametrize(
    ("name", "gpu_type", "same"),
    [
        ("NVIDIA H100 80GB HBM3", "h100", True),
        ("NVIDIA H100 PCIe", "h100-pcie", True),
        ("NVIDIA A100-SXM4-80GB", "a100", True),
        ("NVIDIA GeForce RTX 4090", "rtx4090", True),
        ("NVIDIA GH200 480GB", "gh200", True),
        ("NVIDIA GB200", "b200", False),
        ("NVIDIA H200", "h20", False),
        ("NVIDIA GH200 480GB", "h200", False),
    ],
)
def test_a_type_matches_complete_words_of_the_product_name(name: str, gpu_type: str, same: bool) -> None:
    assert is_gpu_of_type(name, gpu_type) is same


def test_jobs_may_use_all_gpus(programs: Any) -> None:
    install_nvidia_smi(programs, "2-h200")
    script = Local().build_job(job(2), probed("h200")).text
    assert "gpus_wanted=2\nmachine_gpus=(0 1)\n" in script


def test_jobs_use_only_the_gpus_that_cuda_visible_devices_names(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvidia_smi(programs, "8-h100")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert "gpus_wanted=1\nmachine_gpus=(2 5)\n" in Local().build_job(job(1), probed()).text
    with pytest.raises(SpecError, match=r"needs 4 GPUs, but this machine has 2 \(CUDA_VISIBLE_DEVICES is 2,5\)"):
        Local().build_job(job(4), probed())
    with pytest.raises(SpecError, match=r"needs 4 GPUs, but this machine has 3; expected at most 3"):
        Local().build_job(job(4), probed(machine_gpus=3))


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles", "MIG-12345678-1234-1234-1234-123456789abc"])
def test_other_values_of_cuda_visible_devices_name_no_gpu(
    programs: Any, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    install_nvidia_smi(programs, "2-h200")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert "machine_gpus=(0 1)" in Local().build_job(job(1), probed("h200")).text


@pytest.mark.parametrize(
    ("recorded", "message"),
    [
        ("2-h200", "workload.gpus: the job needs 4 GPUs, but this machine has 2; expected at most 2"),
        (None, "workload.gpus: the job needs 4 GPUs, but this machine has none (nvidia-smi is not installed)"),
    ],
)
def test_a_job_that_needs_too_many_gpus_is_rejected(programs: Any, recorded: str | None, message: str) -> None:
    if recorded:
        install_nvidia_smi(programs, recorded)
    with pytest.raises(SpecError) as raised:
        Local().build_job(job(4), probed("h200"))
    assert str(raised.value).startswith(message)


def test_a_broken_driver_is_reported(programs: Any) -> None:
    programs("nvidia-smi", f'echo "{MISMATCH}"; exit 18')
    with pytest.raises(SpecError, match="nvidia-smi fails: Failed to initialize NVML: Driver/library version mismatch"):
        Local().build_job(job(1), probed())


def test_another_gpu_type_is_rejected(programs: Any) -> None:
    install_nvidia_smi(programs, "1-a100")
    with pytest.raises(SpecError, match=r'workload.gpu_type: this machine has NVIDIA A100-SXM4-40GB, not "h100"'):
        Local().build_job(job(1), probed())


def test_machine_gpus_of_the_spec_replaces_the_number_of_nvidia_smi(programs: Any) -> None:
    assert "machine_gpus=(0 1 2 3)" in Local().build_job(job(2), probed("mi300x", machine_gpus=4)).text
    with pytest.raises(SpecError, match="this machine has 4"):
        Local().build_job(job(8), probed("mi300x", machine_gpus=4))


def test_a_job_is_not_rejected_before_the_probe() -> None:
    assert "machine_gpus=(0 1 2 3 4 5 6 7)" in Local().build_job(job(8), target()).text


DOCKER = """case $1 in info) echo '27.1.1|/var/lib/docker|{"runc":{}}' ;; esac"""


def test_missing_gpu_access_for_containers_is_reported_before_an_image_is_pulled(programs: Any) -> None:
    install_nvidia_smi(programs, "8-h100")
    programs("docker", DOCKER)
    with pytest.raises(TargetError, match="install nvidia-container-toolkit"):
        Local().build_job(job(8, "nvcr.io/x:1"), probed())
    programs("nvidia-ctk", "")
    assert "contained train" in Local().build_job(job(8, "nvcr.io/x:1"), probed()).text


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        ({"docker": DOCKER, "podman": "echo '5.0|/x'"}, "docker"),
        ({"docker": "echo 'Cannot connect to the Docker daemon' >&2; exit 1", "podman": "echo '5.0|/x'"}, "podman"),
        ({"enroot": "echo 4.1.2"}, "enroot"),
    ],
)
def test_the_first_engine_that_works_is_used_and_reported(
    programs: Any, installed: dict[str, str], chosen: str
) -> None:
    for name, script in installed.items():
        programs(name, script)
    programs("nvidia-ctk", "")
    install_nvidia_smi(programs, "8-h100")
    [note] = Local().build_job(job(8, "nvcr.io/x:1"), probed()).notes
    assert f"images run in {chosen}" in note


@pytest.mark.parametrize(
    ("engine", "warning", "output"),
    [
        (
            "docker",
            "WARNING: Error loading config file: ~/.docker/config.json: permission denied",
            '27.1.1|/x|{"runc"}',
        ),
        ("podman", 'time="2026-01-01T00:00:00Z" level=warning msg="no systemd user session"', "5.0.2|/x"),
    ],
)
def test_a_warning_of_an_engine_is_no_error(programs: Any, engine: str, warning: str, output: str) -> None:
    programs(engine, f"echo '{warning}' >&2; echo '{output}'")
    facts = probed().facts
    assert (facts[f"{engine}.version"], facts[f"{engine}.folder"]) == (output.split("|")[0], "/x")
    assert f"{engine}.error" not in facts


def test_a_dry_run_does_not_claim_that_an_engine_works(programs: Any) -> None:
    programs("podman", "exit 1")
    [note] = Local().build_job(job(0, "nvcr.io/x:1"), target()).notes
    assert note.endswith(
        "images run in the first of docker, podman, enroot that works on this machine; this script is for podman"
    )


def test_a_run_with_an_image_is_rejected_without_an_engine(programs: Any) -> None:
    with pytest.raises(TargetError, match="docker, podman and enroot are not installed"):
        Local().build_job(job(0, "nvcr.io/x:1"), probed())


def test_doctor_reports_gpus_in_use_and_a_missing_toolkit(programs: Any) -> None:
    install_nvidia_smi(programs, "8-h100")
    programs("docker", DOCKER)
    checks = {check.name: check for check in Local().checks(probed(), LocalHost(), ())}
    assert checks["gpus"].detail == "8 x NVIDIA H100 80GB HBM3, 86 GB each, driver 550.54.15"
    assert "77 of 86 GB in use" in checks["gpu 3"].detail
    assert not checks["gpus in containers"].ok
    assert "restart docker" in checks["gpus in containers"].remedy
    assert checks["docker"].detail == "27.1.1"
    assert os.path.isabs(checks["docker disk"].detail.split()[-1])


def test_doctor_prints_the_remedy_of_an_engine_once(programs: Any) -> None:
    programs("docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    [docker] = (check for check in Local().checks(probed(), LocalHost(), ()) if check.name == "docker")
    assert (docker.ok, docker.detail) == (False, "the Docker daemon is not running")
    assert docker.remedy == "start it with `sudo systemctl start docker`"


def test_runs_without_an_image_need_no_checks_of_containers(programs: Any) -> None:
    install_nvidia_smi(programs, "8-h100")
    programs("docker", "exit 1")
    without_images = attrs.evolve(probed(), uses_images=False)
    names = [check.name for check in Local().checks(without_images, LocalHost(), ())]
    assert names == ["gpus", "gpu 3"]


def test_doctor_reports_a_broken_driver(programs: Any) -> None:
    programs("nvidia-smi", f'echo "{MISMATCH}"; exit 18')
    checks = {check.name: check for check in Local().checks(probed(), LocalHost(), ())}
    assert not checks["gpus"].ok
    assert "driver" in checks["gpus"].remedy
