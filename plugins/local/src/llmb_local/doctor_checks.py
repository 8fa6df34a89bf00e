"""Checks of this machine for ``llmb doctor``."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator

from llmb import DoctorCheck, Target
from llmb_local.gpus import GPU_REMEDIES, Gpu, is_probed, parse_gpus
from llmb_local.options import LocalOptions
from llmb_local.runtimes.choose_runtime import ENGINES

ENOUGH_GB = 30.0
"""Free disk space for one framework image: NVIDIA's images are about this large when unpacked."""

IDLE_GB = 1.0  # GPU memory that a driver and a desktop use


def check_machine(target: Target[LocalOptions]) -> tuple[DoctorCheck, ...]:
    """Return the checks of container engines, disk space for images, GPUs, and GPU access from containers.

    A component that the machine lacks has ``ok=None``: only some recipes need it. Runs without an image need no checks
    of containers. Return no checks before the probe.
    """
    if not is_probed(target):
        return ()
    return (*(_engines(target) if target.uses_images else ()), *_gpus(target))


def _engines(target: Target[LocalOptions]) -> Iterator[DoctorCheck]:
    facts = target.facts
    working = [name for name in ENGINES if f"{name}.version" in facts]
    for name in ENGINES:
        if error := facts.get(f"{name}.error"):
            if working:
                yield DoctorCheck(name=name, ok=None, detail=f"not needed, because {working[0]} works: {error}")
            else:
                problem, _, remedy = error.partition("; ")
                yield DoctorCheck(name=name, ok=False, detail=problem, remedy=remedy)
        elif name in working:
            yield DoctorCheck(name=name, ok=True, detail=facts[f"{name}.version"])
        if folder := facts.get(f"{name}.folder"):
            yield from _disk(name, folder)
    if not working and not any(f"{name}.error" in facts for name in ENGINES):
        detail = "docker, podman and enroot are not installed: recipes with an image cannot run here"
        yield DoctorCheck(name="containers", ok=None, detail=detail)


def _disk(name: str, folder: str) -> Iterator[DoctorCheck]:
    """Check the free space of the folder in which an engine keeps its images."""
    existing = folder
    while existing != "/" and not os.path.exists(existing):
        existing = os.path.dirname(existing)
    free_gb = shutil.disk_usage(existing).free / 1e9
    yield DoctorCheck(
        name=f"{name} disk",
        ok=free_gb >= ENOUGH_GB,
        detail=f"{free_gb:.0f} GB free in {folder}",
        remedy="" if free_gb >= ENOUGH_GB else f"free {ENOUGH_GB:.0f} GB there, for example with `{name} system prune`",
    )


def _gpus(target: Target[LocalOptions]) -> Iterator[DoctorCheck]:
    found = parse_gpus(target.facts)
    if not found:
        yield _no_gpus(target)
        return
    yield DoctorCheck(name="gpus", ok=True, detail=_summary(found))
    for gpu in found:
        if gpu.used_gb > IDLE_GB:
            detail = f"{gpu.used_gb:.0f} of {gpu.memory_gb:.0f} GB in use"
            remedy = "end the processes that `nvidia-smi` lists on this GPU: `kill PID`"
            yield DoctorCheck(name=f"gpu {gpu.index}", ok=False, detail=detail, remedy=remedy)
    if target.uses_images and any(f"{name}.version" in target.facts for name in ENGINES):
        yield _toolkit(target)


def _no_gpus(target: Target[LocalOptions]) -> DoctorCheck:
    if (stated := target.options.machine_gpus) is not None:
        return DoctorCheck(name="gpus", ok=True, detail=f"{stated}, from target.machine_gpus")
    reason = target.facts.get("nvidia-smi.error", "nvidia-smi lists none")
    broken = reason.startswith("nvidia-smi fails")
    remedy = "fix the NVIDIA driver; if it was updated, restart the machine: `sudo reboot`" if broken else ""
    return DoctorCheck(name="gpus", ok=False if broken else None, detail=f"none: {reason}", remedy=remedy)


def _summary(found: tuple[Gpu, ...]) -> str:
    """Describe the GPUs, for example: 8 x NVIDIA H100 80GB HBM3, 86 GB each, driver 550.54.15."""
    kinds = Counter((gpu.name, round(gpu.memory_gb)) for gpu in found)
    each = [f"{count} x {name}, {memory_gb} GB each" for (name, memory_gb), count in kinds.items()]
    return f"{'; '.join(each)}, driver {found[0].driver}"


def _toolkit(target: Target[LocalOptions]) -> DoctorCheck:
    toolkit = target.facts.get("nvidia.toolkit")
    if toolkit:
        return DoctorCheck(name="gpus in containers", ok=True, detail=toolkit)
    return DoctorCheck(
        name="gpus in containers",
        ok=False,
        detail="the NVIDIA container toolkit is not installed",
        remedy=next(GPU_REMEDIES[name] for name in ENGINES if f"{name}.version" in target.facts),
    )
