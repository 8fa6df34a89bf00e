"""The local scheduler's own keys of [target]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from llmb import Fault, FrozenMap, PositiveFloat, PositiveInt, SpecError, format_value

RuntimeName = Literal["docker", "podman", "enroot", "venv", "none"]

TRAINING_LIMITS = FrozenMap({"memlock": -1, "stack": 64 << 20})
"""The limits that NVIDIA's framework images request: lockable memory and bytes of stack. -1 means no limit."""


def _one_line(_instance: Any, _attribute: attrs.Attribute[Any], value: str | tuple[str, ...]) -> None:
    """Reject control characters, such as line ends, in a word or in any of several words."""
    words = (value,) if isinstance(value, str) else value
    wrong = [each for each in words if not each.isprintable()]
    if wrong:
        expected = "text of one line, without control characters"
        raise SpecError(*(Fault(message=f"invalid value {format_value(each)}", expected=expected) for each in wrong))


@attrs.frozen(kw_only=True)
class ContainerOptions:
    """Keys of [target.container]. The defaults suit training on several GPUs. Enroot supports only ``options``."""

    network: str = attrs.field(default="host", validator=_one_line)
    """Network of the container, as the engine's option of that name takes it. Example: ``"none"``"""
    ipc: str = attrs.field(default="host", validator=_one_line)
    """IPC namespace of the container, as the engine's option takes it. Example: ``"private"``"""
    shm_gb: PositiveFloat | None = None
    """Shared memory in GB, if `ipc` is not `"host"`. Default: the engine's. Example: ``64.0``"""
    memory_gb: PositiveFloat | None = None
    """Limit of the memory in GB. Default: no limit. Example: ``200.0``"""
    ulimits: Mapping[str, int] = TRAINING_LIMITS
    """Limits of the processes in the container; -1 is unlimited. Example: ``{ memlock = -1 }``"""
    # to bind a process to the memory of its GPU's NUMA node
    capabilities: tuple[str, ...] = attrs.field(default=("SYS_NICE",), validator=_one_line)
    """Capabilities of the processes in the container. Example: ``["SYS_NICE"]``"""
    options: tuple[str, ...] = attrs.field(default=(), validator=_one_line)
    """Further words for `docker run`, `podman run` or `enroot start`. Default: none. Example:
    ``["--device=/dev/infiniband"]``
    """


@attrs.frozen(kw_only=True)
class LocalOptions:
    """Options of jobs on this machine."""

    runtime: RuntimeName | None = None
    """What runs the commands of a job: `none` runs them in your own environment. Default: the best that works.
    Example: ``"docker"``
    """
    container: ContainerOptions = ContainerOptions()
    """Settings of containers, see below. Default: see below. Example: ``{ shm_gb = 64.0 }``"""
    max_parallel: PositiveInt = 1
    """Jobs that run at the same time, each with its own GPUs. Example: ``2``"""
    lock: str = "$HOME/.cache/llmb-$HOSTNAME.lock"
    """File whose lock serialises the jobs of all llmb processes; bash expands `$HOME` and `$HOSTNAME` in its
    path. Example: ``"/var/lock/llmb/lock"``
    """
    grace_s: PositiveInt = 10
    """Seconds between SIGTERM and SIGKILL; a second `llmb cancel` kills immediately. Example: ``30``"""
    machine_gpus: PositiveInt | None = None
    """Number of GPUs, if nvidia-smi cannot list them. Containers then see the GPUs that `container.options`
    pass to them. Default: those of nvidia-smi. Example: ``8``
    """
