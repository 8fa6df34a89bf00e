"""What ``llmb doctor`` tells of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from llmb import DoctorCheck, Target
from llmb_local.machine import TOOLKIT_REMEDY, Gpu, gpus, probed
from llmb_local.options import LocalOptions
from llmb_local.runtimes.choose import ENGINES

ENOUGH_GB = 30.0
"""Free disk for one framework image: NVIDIA's are about that large once they are unpacked."""

IDLE_GB = 1.0  # what a driver and a desktop take of a GPU's memory


def checks(target: Target[LocalOptions]) -> tuple[DoctorCheck, ...]:
    """Container engines, disk for their images, GPUs, and whether containers may have them.

    What a machine simply does not have is no fault of its own, and not ok either: the recipes that need it say so.
    """
    return (*_engines(target), *_gpus(target)) if probed(target) else ()


def _engines(target: Target[LocalOptions]) -> Iterator[DoctorCheck]:
    facts = target.facts
    working = [name for name in ENGINES if f"{name}.version" in facts]
    for name in ENGINES:
        if refusal := facts.get(f"{name}.refusal"):  # another may work: then this one is not needed
            detail = f"not needed, since {working[0]} works: {refusal}" if working else refusal
            yield DoctorCheck(
                name=name, ok=None if working else False, detail=detail, remedy="" if working else _remedy(refusal)
            )
        elif name in working:
            yield DoctorCheck(name=name, ok=True, detail=facts[f"{name}.version"])
        if folder := facts.get(f"{name}.folder"):
            yield from _disk(name, folder)
    if not working and not any(f"{name}.refusal" in facts for name in ENGINES):
        detail = "none of docker, podman and enroot is installed: recipes with an image cannot run here"
        yield DoctorCheck(name="containers", ok=None, detail=detail)


def _remedy(refusal: str) -> str:
    return refusal.partition("; ")[2]


def _disk(name: str, folder: str) -> Iterator[DoctorCheck]:
    """Room for images; nothing is said of a folder on another machine."""
    there = folder
    while there != "/" and not os.path.exists(there):
        there = os.path.dirname(there)
    free_gb = shutil.disk_usage(there).free / 1e9
    yield DoctorCheck(
        name=f"{name} disk",
        ok=free_gb >= ENOUGH_GB,
        detail=f"{free_gb:.0f} GB free in {folder}",
        remedy="" if free_gb >= ENOUGH_GB else f"free {ENOUGH_GB:.0f} GB there, as with `{name} system prune`",
    )


def _gpus(target: Target[LocalOptions]) -> Iterator[DoctorCheck]:
    found = gpus(target.facts)
    if not found:
        yield _no_gpus(target)
        return
    yield DoctorCheck(name="gpus", ok=True, detail=_summary(found))
    for gpu in found:
        if gpu.used_gb > IDLE_GB:
            detail = f"{gpu.used_gb:.0f} of {gpu.memory_gb:.0f} GB are in use already"
            yield DoctorCheck(
                name=f"gpu {gpu.index}", ok=False, detail=detail, remedy="end what runs there: `nvidia-smi` names it"
            )
    if any(f"{name}.version" in target.facts for name in ENGINES):
        yield _toolkit(target)


def _no_gpus(target: Target[LocalOptions]) -> DoctorCheck:
    if (stated := target.options.machine_gpus) is not None:
        return DoctorCheck(name="gpus", ok=True, detail=f"{stated}, as target.machine_gpus states")
    why = target.facts.get("nvidia-smi.refusal", "nvidia-smi sees none")
    broken = why.startswith("nvidia-smi fails")
    remedy = "mend the NVIDIA driver, or restart the machine after its update" if broken else ""
    return DoctorCheck(name="gpus", ok=False if broken else None, detail=f"none: {why}", remedy=remedy)


def _summary(found: tuple[Gpu, ...]) -> str:
    """Such as: 8 x NVIDIA H100 80GB HBM3, 86 GB each, driver 550.54.15."""
    kinds = {(gpu.name, round(gpu.memory_gb)): 0 for gpu in found}
    for gpu in found:
        kinds[gpu.name, round(gpu.memory_gb)] += 1
    each = [f"{count} x {name}, {memory_gb} GB each" for (name, memory_gb), count in kinds.items()]
    return f"{'; '.join(each)}, driver {found[0].driver}"


def _toolkit(target: Target[LocalOptions]) -> DoctorCheck:
    toolkit = target.facts.get("nvidia.toolkit")
    if toolkit:
        return DoctorCheck(name="gpus in containers", ok=True, detail=toolkit)
    return DoctorCheck(
        name="gpus in containers", ok=False, detail="there is no NVIDIA container toolkit", remedy=TOOLKIT_REMEDY
    )
