"""The keys of [target] for ``scheduler = "slurm"``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import attrs

from llmb import Fault, FrozenMap, SpecError, shown

RuntimeName = Literal["pyxis", "venv", "none"]
GpuRequest = Literal["gres", "gpus-per-node", "none"]

LONG_OPTION = re.compile(r"[a-z][a-z0-9]+(-[a-z0-9]+)*")
OWN_KEYS = (
    *("account", "partition", "qos", "reservation", "nodelist", "exclude", "constraint", "dependency", "nice"),
    *("mem", "exclusive", "mpi", "segment"),
)
"""Options of sbatch that have a key of their own."""

DECIDED = {
    **{name: f"target.{name}" for name in OWN_KEYS},
    "gres": 'target.gpu_request = "gres"',
    "gpus": "workload.gpus",
    "gpus-per-node": 'target.gpu_request = "gpus-per-node"',
    "mem-per-cpu": "target.mem",
    "mem-per-gpu": "target.mem",
    "nodes": "workload.gpus and target.gpus_per_node",
    "ntasks": "workload.gpus",
    "ntasks-per-node": "target.gpus_per_node",
    "time": "workload.time_limit",
    **dict.fromkeys(
        ("array", "chdir", "clusters", "comment", "error", "export", "help", "job-name", "kill-on-invalid-dep",
         "open-mode", "output", "parsable", "test-only", "usage", "version", "wait", "wrap"),
        "",
    ),
}  # fmt: skip
"""Options of sbatch that may not be among the further ones, each with the key that decides it."""


def _from_environment(*names: str) -> Callable[[], str | None]:
    """A default: the first of these variables that is set in the environment of llmb."""

    def default() -> str | None:
        return next((value for name in names if (value := os.environ.get(name))), None)

    return default


def _one_line(_instance: Any, _attribute: attrs.Attribute[Any], value: str | None) -> None:
    """Slurm has no way to carry a line's end or another control character in an option."""
    if value is not None and (not value or not value.isprintable()):
        raise SpecError(_no_line(value))


def _no_line(value: str, key: str | None = None) -> Fault:
    return Fault(message=f"is {shown(value)}", key=key, expected="printable text of one line: Slurm carries no other")


def _further(_instance: Any, _attribute: attrs.Attribute[Any], value: Mapping[str, Any]) -> None:
    if wrong := [fault for name, setting in value.items() for fault in _refused(name, setting)]:
        raise SpecError(*wrong)


def _refused(name: str, setting: Any) -> Iterator[Fault]:
    if not LONG_OPTION.fullmatch(name):
        message = "is no long option of sbatch"
        yield Fault(message=message, key=name, expected="its name without dashes, such as licenses or switches")
    elif name in DECIDED:
        instead = f"{DECIDED[name]} in its place" if DECIDED[name] else "no such key"
        yield Fault(message="is decided by llmb", key=name, expected=instead)
    elif setting is False:
        yield Fault(message="is false", key=name, expected="true for a flag; what is not wanted is left out")
    elif isinstance(setting, str) and (not setting or not setting.isprintable()):
        yield _no_line(setting, name)


def _text(default: Callable[[], str | None] = lambda: None) -> Any:
    return attrs.field(factory=default, validator=_one_line)


@attrs.frozen(kw_only=True)
class SlurmOptions:
    """How jobs are asked for on this cluster. See docs/slurm.md.

    ``runtime``: where a job's processes run: in a container by pyxis, in a virtual environment on the shared work
    directory, or as they are (none); absent, as the recipe needs it. ``gpu_request``: how GPUs are asked for, as the
    site wants it. ``account`` and ``partition``, where absent, come from SBATCH_ACCOUNT or SLURM_ACCOUNT and from
    SBATCH_PARTITION or SLURM_PARTITION. ``segment``: ask for whole NVLink domains where a job needs them. ``sbatch``:
    any further option of sbatch; true is a flag without a value. The others are the options of that name.
    """

    runtime: RuntimeName | None = None
    gpu_request: GpuRequest = "gres"
    account: str | None = _text(_from_environment("SBATCH_ACCOUNT", "SLURM_ACCOUNT"))
    partition: str | None = _text(_from_environment("SBATCH_PARTITION", "SLURM_PARTITION"))
    qos: str | None = _text()
    reservation: str | None = _text()
    nodelist: str | None = _text()
    exclude: str | None = _text()
    constraint: str | None = _text()
    dependency: str | None = _text()
    nice: int | None = None
    mem: str = attrs.field(default="0", validator=_one_line)
    exclusive: bool = True
    mpi: str | None = _text()
    segment: bool = True
    sbatch: Mapping[str, bool | int | float | str] = attrs.field(factory=FrozenMap, validator=_further)
