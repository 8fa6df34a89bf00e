"""The GPUs of this machine, as nvidia-smi reports them, and the GPUs that a job may use."""

from collections.abc import Mapping

import attrs

from llmb import Fault, Job, SpecError, Target, TargetError, counted, format_value, is_gpu_of_type
from llmb_local.options import LocalOptions, RuntimeName

GPU_REMEDIES = {
    "docker": "install nvidia-container-toolkit, then run `sudo nvidia-ctk runtime configure` and restart docker",
    "podman": "install nvidia-container-toolkit, then run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
    "enroot": "install libnvidia-container-tools",
}
"""What each container engine needs to give GPUs to containers."""


@attrs.frozen(kw_only=True)
class Gpu:
    """One GPU as nvidia-smi reports it. ``used_gb`` is the memory that processes use already."""

    index: int
    name: str
    memory_gb: float
    used_gb: float
    driver: str


def is_probed(target: Target[LocalOptions]) -> bool:
    """Check whether the machine was probed. A dry run starts nothing, so it knows nothing about the machine."""
    return "machine" in target.facts


def parse_gpus(facts: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Parse the facts ``gpu.<index>`` (name, total MiB, used MiB, driver, as nvidia-smi prints CSV) into GPUs."""
    found = []
    for key, line in facts.items():
        kind, _, index = key.partition(".")
        fields = [field.strip() for field in line.split(",")]
        if kind == "gpu" and index.isdigit() and len(fields) == 4:
            name, total, used, driver = fields
            found.append(Gpu(index=int(index), name=name, memory_gb=_gb(total), used_gb=_gb(used), driver=driver))
    return tuple(sorted(found, key=lambda gpu: gpu.index))


def _gb(mebibytes: str) -> float:
    """Convert MiB to GB. Return 0 for [N/A], which nvidia-smi prints if a GPU shares the memory of its host."""
    return int(mebibytes) * 2**20 / 1e9 if mebibytes.isdigit() else 0.0


def machine_gpus(job: Job, target: Target[LocalOptions]) -> tuple[int, ...]:
    """Return the indices of all GPUs that jobs may use, empty if the job needs none.

    Their number is ``target.machine_gpus``, else that of the GPUs that nvidia-smi lists, of which CUDA_VISIBLE_DEVICES
    may name some, else, before the probe, the number that the job needs. Raise SpecError if the job needs more GPUs or
    another type.
    """
    if not job.gpus_per_node:
        return ()
    if target.options.machine_gpus is not None:
        usable: tuple[int, ...] = tuple(range(target.options.machine_gpus))
    elif not is_probed(target):
        usable = tuple(range(job.gpus_per_node))
    else:
        found = parse_gpus(target.facts)
        _check_types(found, target)
        usable = tuple(gpu.index for gpu in found)
    if job.gpus_per_node > len(usable):
        raise SpecError(_too_few(job, len(usable), target))
    return usable


def _too_few(job: Job, usable: int, target: Target[LocalOptions]) -> Fault:
    reason = ""
    if target.options.machine_gpus is None:  # else the user stated the number
        visible = target.facts.get("gpus.visible")
        reason = target.facts.get("nvidia-smi.error") or (f"CUDA_VISIBLE_DEVICES is {visible}" if visible else "")
    has = f"this machine has {usable or 'none'}{f' ({reason})' if reason else ''}"
    message = f"the job needs {counted(job.gpus_per_node, 'GPU')}, but {has}"
    other = "a machine with GPUs, or target.machine_gpus if nvidia-smi does not list its GPUs"
    return Fault(message=message, key="workload.gpus", expected=f"at most {usable}" if usable else other)


def _check_types(found: tuple[Gpu, ...], target: Target[LocalOptions]) -> None:
    for gpu_type in target.gpu_types:
        if found and not any(is_gpu_of_type(gpu.name, gpu_type) for gpu in found):
            message = f"this machine has {found[0].name}, not {format_value(gpu_type)}"
            raise SpecError(Fault(message=message, key="workload.gpu_type", expected="the type of these GPUs"))


def check_toolkit(name: RuntimeName, target: Target[LocalOptions]) -> None:
    """Raise TargetError, before an image is pulled, if containers cannot get GPUs."""
    known = is_probed(target) and target.options.machine_gpus is None
    if known and "nvidia.toolkit" not in target.facts:
        raise TargetError(f"{name} cannot give GPUs to containers on this machine; {GPU_REMEDIES[name]}")
