"""The keys of [target] that the local scheduler understands beyond the core's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from llmb import FrozenMap, PositiveFloat, PositiveInt

RuntimeName = Literal["docker", "podman", "enroot", "venv", "none"]

GRACE_S = PositiveInt(10)
ONE_JOB = PositiveInt(1)
TRAINING_LIMITS = FrozenMap({"memlock": -1, "stack": 64 << 20})
"""What NVIDIA's framework images ask for on their start: memory that may be locked, bytes of stack; -1: no limit."""


@attrs.frozen(kw_only=True)
class ContainerOptions:
    """Keys of [target.container]. The defaults are what training on several GPUs needs.

    ``network`` and ``ipc`` as the engine names them, ``shm_gb`` of shared memory where ``ipc`` is not the host's,
    ``memory_gb`` of memory at most, ``ulimits`` and ``capabilities`` that are set, and ``options``, further words for
    ``docker run``, ``podman run`` or ``enroot start``. Enroot has neither namespaces for these nor limits, and takes
    ``options`` alone.
    """

    network: str = "host"
    ipc: str = "host"
    shm_gb: PositiveFloat | None = None
    memory_gb: PositiveFloat | None = None
    ulimits: Mapping[str, int] = TRAINING_LIMITS
    capabilities: tuple[str, ...] = ("SYS_NICE",)  # binding a process to the memory of its GPU's node
    options: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class LocalOptions:
    """How jobs run on this machine.

    ``runtime`` is what a job's commands run in; without it, the best that is there: a container engine for an image
    (docker, podman, enroot), a virtual environment for a locked list of packages. With ``none`` they run as they are,
    in what the user has prepared.

    ``max_parallel`` jobs run at a time; each has GPUs of its own. ``lock`` is the file whose lock makes the jobs of all
    ``llmb`` processes take turns on this machine, and beside which are the locks of its GPUs; ``$HOME`` and
    ``$HOSTNAME`` in it mean what they mean to bash. ``grace_s`` is how many seconds a process may go on after it was
    told to end; then it is killed.

    ``machine_gpus`` is how many GPUs there are where nvidia-smi cannot tell. A container then sees those that
    ``container.options`` show it, and a job finds in CUDA_VISIBLE_DEVICES which of them it has.
    """

    runtime: RuntimeName | None = None
    container: ContainerOptions = ContainerOptions()
    max_parallel: PositiveInt = ONE_JOB
    lock: str = "$HOME/.cache/llmb-$HOSTNAME.lock"
    grace_s: PositiveInt = GRACE_S
    machine_gpus: PositiveInt | None = None
