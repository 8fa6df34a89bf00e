"""What the probe found on this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from llmb import Fault, Job, SpecError, Target, shown
from llmb_local.options import LocalOptions

TOOLKIT_REMEDY = "install nvidia-container-toolkit, then `sudo nvidia-ctk runtime configure`"


@attrs.frozen(kw_only=True)
class Gpu:
    """One GPU as nvidia-smi names it. ``used_gb`` is memory that somebody has taken already."""

    index: int
    name: str
    memory_gb: float
    used_gb: float
    driver: str

    def is_of(self, gpu_type: str) -> bool:
        """Whether a type such as h100 is in the product's name, such as NVIDIA H100 80GB HBM3, as whole words."""
        words = re.split(r"[^a-z0-9]+", self.name.lower())
        wanted = re.sub(r"[^a-z0-9]", "", gpu_type.lower())
        return any(
            "".join(words[start:end]) == wanted
            for start in range(len(words))
            for end in range(start + 1, len(words) + 1)
        )


def probed(target: Target[LocalOptions]) -> bool:
    """Whether the machine was asked: in a dry run nothing may be started, and nothing is known."""
    return "machine" in target.facts


def gpus(facts: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The GPUs among the facts ``gpu.<index>``: name, total and used MiB, driver, as nvidia-smi writes them as CSV."""
    found = []
    for key, line in facts.items():
        kind, _, index = key.partition(".")
        fields = [field.strip() for field in line.split(",")]
        if kind == "gpu" and index.isdigit() and len(fields) == 4:
            name, total, used, driver = fields
            found.append(Gpu(index=int(index), name=name, memory_gb=_gb(total), used_gb=_gb(used), driver=driver))
    return tuple(sorted(found, key=lambda gpu: gpu.index))


def _gb(mebibytes: str) -> float:
    """Null memory where a GPU shares that of its host, and nvidia-smi says [N/A]."""
    return int(mebibytes) * 2**20 / 1e9 if mebibytes.isdigit() else 0.0


def machine_gpus(job: Job, target: Target[LocalOptions]) -> tuple[int, ...]:
    """The numbers of all GPUs that jobs may have.

    As many as the spec says there are, else those that nvidia-smi knows, else, before anything may be asked, as many
    as this job wants. Raises SpecError for a job that wants more, or GPUs of another type.
    """
    if not job.gpus_per_node:
        return ()
    if target.options.machine_gpus is not None:
        there: tuple[int, ...] = tuple(range(target.options.machine_gpus))
    elif not probed(target):
        there = tuple(range(job.gpus_per_node))
    else:
        found = gpus(target.facts)
        _refuse_other_types(found, target)
        there = tuple(gpu.index for gpu in found)
    if job.gpus_per_node > len(there):
        raise SpecError(_too_few(job, len(there), target))
    return there


def _too_few(job: Job, there: int, target: Target[LocalOptions]) -> Fault:
    why = target.facts.get("nvidia-smi.refusal", "")
    asks = f"{job.gpus_per_node} GPU{'s' if job.gpus_per_node > 1 else ''}"
    has = f"this machine has {there or 'none'}{f' ({why})' if why else ''}"
    return Fault(
        message=f"asks for {asks}, and {has}",
        key="workload.gpus",
        expected=f"at most {there}"
        if there
        else "a machine with GPUs, or target.machine_gpus where nvidia-smi sees none",
    )


def _refuse_other_types(found: tuple[Gpu, ...], target: Target[LocalOptions]) -> None:
    for gpu_type in target.gpu_types:
        if found and not any(gpu.is_of(gpu_type) for gpu in found):
            message = f"is {shown(gpu_type)}, and this machine has {found[0].name}"
            raise SpecError(Fault(message=message, key="workload.gpu_type", expected="the type that is there"))
