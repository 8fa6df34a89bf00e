"""The local scheduler's own keys of [target]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from llmb import FrozenMap, PositiveFloat, PositiveInt

RuntimeName = Literal["docker", "podman", "enroot", "venv", "none"]

GRACE_S = 10
ONE_JOB = 1
TRAINING_LIMITS = FrozenMap({"memlock": -1, "stack": 64 << 20})
"""The limits that NVIDIA's framework images request: lockable memory and bytes of stack. -1 means no limit."""


@attrs.frozen(kw_only=True)
class ContainerOptions:
    """Keys of [target.container]. The defaults suit training on several GPUs.

    ``network`` and ``ipc`` have the values of the engine's options. ``shm_gb`` is the shared memory if ``ipc`` is not
    ``host``. ``memory_gb`` limits the memory. ``ulimits`` and ``capabilities`` are set in the container. ``options``
    are further words for ``docker run``, ``podman run`` or ``enroot start``. Enroot supports ``options`` only.
    """

    network: str = "host"
    ipc: str = "host"
    shm_gb: PositiveFloat | None = None
    memory_gb: PositiveFloat | None = None
    ulimits: Mapping[str, int] = TRAINING_LIMITS
    capabilities: tuple[str, ...] = ("SYS_NICE",)  # to bind a process to the memory of its GPU's NUMA node
    options: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class LocalOptions:
    """Options of jobs on this machine.

    ``runtime`` runs the commands of a job. The default is the first container engine that works (docker, podman,
    enroot) for an image, and a virtual environment for a lock file. ``none`` runs the commands in the user's own
    environment.

    ``max_parallel`` is the number of jobs that run at the same time, each with its own GPUs. ``lock`` is the file whose
    lock serialises the jobs of all ``llmb`` processes on this machine. The locks of the GPUs are beside it. Bash
    expands ``$HOME`` and ``$HOSTNAME`` in its path. ``grace_s`` is the time in seconds between SIGTERM and SIGKILL.

    ``machine_gpus`` is the number of GPUs, if nvidia-smi cannot list them. A container then sees the GPUs that
    ``container.options`` pass to it, and CUDA_VISIBLE_DEVICES names those that belong to the job.
    """

    runtime: RuntimeName | None = None
    container: ContainerOptions = ContainerOptions()
    max_parallel: PositiveInt = ONE_JOB
    lock: str = "$HOME/.cache/llmb-$HOSTNAME.lock"
    grace_s: PositiveInt = GRACE_S
    machine_gpus: PositiveInt | None = None
