"""The keys of [target] for ``scheduler = "slurm"``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import attrs

from llmb import Fault, FrozenMap, NonNegativeInt, SpecError, format_value

RuntimeName = Literal["pyxis", "venv", "none"]
GpuRequest = Literal["gres", "gpus-per-node", "none"]

NO_MEM = "none"
"""The value of ``mem`` for which llmb does not pass ``--mem``."""

MEMORY = re.compile(r"\d+([KMGT]B?)?", re.IGNORECASE)

MEM_RATIOS = ("mem-per-cpu", "mem-per-gpu")
"""Options of sbatch that exclude ``--mem``."""

LONG_OPTION = re.compile(r"[a-z][a-z0-9]+(-[a-z0-9]+)*")
OWN_KEYS = (
    *("account", "partition", "qos", "reservation", "nodelist", "exclude", "constraint", "dependency", "nice"),
    *("mem", "exclusive", "segment"),
)
"""Options of sbatch with their own key of [target]."""

SET_BY_LLMB = {
    **{name: f"target.{name}" for name in OWN_KEYS},
    "mpi": "target.mpi",
    "gres": 'target.gpu_request = "gres"',
    "gpus": "workload.gpus",
    "gpus-per-node": 'target.gpu_request = "gpus-per-node"',
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
"""Options of sbatch that [target.sbatch] must not contain, each with the key that sets it, if any."""


OTHER_OPTIONS = (
    *("acctg-freq", "begin", "contiguous", "core-spec", "cpu-freq", "cpus-per-gpu", "cpus-per-task", "deadline"),
    *("distribution", "gpu-bind", "gpu-freq", "gpus-per-socket", "gpus-per-task", "gres-flags", "hint", "hold"),
    *("licenses", "mail-type", "mail-user", "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "no-requeue"),
    *("nodefile", "ntasks-per-core", "ntasks-per-socket", "oversubscribe", "power", "prefer", "priority", "profile"),
    *("propagate", "reboot", "requeue", "signal", "spread-job", "switches", "thread-spec", "threads-per-core"),
    *("time-min", "tmp", "tres-per-task", "use-min-nodes", "wckey"),
)
"""Options of sbatch that users may write into [target]. [target.sbatch] accepts any option."""

KEY_HINTS = {
    **{name: f"target.sbatch.{name}" for name in OTHER_OPTIONS},
    **{name: key.partition(" ")[0] for name, key in SET_BY_LLMB.items() if name not in OWN_KEYS},
    "gpus-per-node": "target.gpus_per_node",
    "container-mounts": "target.mounts",
}
"""Options of sbatch and of pyxis, each with the key of the spec that sets it, if any."""


def _from_environment(*names: str) -> Callable[[], str | None]:
    """Return a default factory: the first of these variables that is set in the environment of llmb."""

    def default() -> str | None:
        return next((value for name in names if (value := os.environ.get(name))), None)

    return default


def _one_line(_instance: Any, _attribute: attrs.Attribute[Any], value: str | None) -> None:
    """Reject empty values and control characters, which Slurm cannot carry in an option."""
    if value is not None and (not value or not value.isprintable()):
        raise SpecError(_not_one_line(value))


def _memory(_instance: Any, _attribute: attrs.Attribute[Any], value: str) -> None:
    """Reject what sbatch rejects as --mem."""
    if value != NO_MEM and not MEMORY.fullmatch(value):
        expected = 'megabytes, or an integer with a unit such as "900G", or "none"'
        raise SpecError(Fault(message=f"invalid value {format_value(value)}", expected=expected))


def _not_one_line(value: str, key: str | None = None) -> Fault:
    return Fault(
        message=f"invalid value {format_value(value)}",
        key=key,
        expected="printable text of one line, as Slurm requires",
    )


def _check_sbatch(instance: SlurmOptions, _attribute: attrs.Attribute[Any], value: Mapping[str, Any]) -> None:
    if wrong := [fault for name, setting in value.items() for fault in _option_faults(name, setting, instance.mem)]:
        raise SpecError(*wrong)


def _option_faults(name: str, setting: Any, mem: str) -> Iterator[Fault]:
    if not LONG_OPTION.fullmatch(name):
        message = "not a long option of sbatch"
        yield Fault(message=message, key=name, expected="a name without leading dashes, such as licenses or switches")
    elif name in SET_BY_LLMB:
        instead = f"{SET_BY_LLMB[name]} instead" if SET_BY_LLMB[name] else "no such key"
        yield Fault(message="llmb sets this option", key=name, expected=instead)
    elif same := next((full for full in sorted(SET_BY_LLMB) if full.startswith(name)), None):
        yield Fault(message=f"sbatch could take it for {same}, which llmb sets", key=name, expected="a complete name")
    elif name in MEM_RATIOS and mem != NO_MEM:
        yield Fault(message="conflicts with --mem", key=name, expected='target.mem instead, or target.mem = "none"')
    elif setting is False:
        yield Fault(message="invalid value false", key=name, expected="true for a flag, or no such key")
    elif isinstance(setting, str) and (not setting or not setting.isprintable()):
        yield _not_one_line(setting, name)


def _text(default: Callable[[], str | None] = lambda: None) -> Any:
    return attrs.field(factory=default, validator=_one_line)


@attrs.frozen(kw_only=True)
class SlurmOptions:
    """Options of jobs on a Slurm cluster."""

    runtime: RuntimeName | None = None
    """What runs the processes: a container of pyxis, a virtual environment on the shared work directory, or
    nothing. Default: what the recipe needs. Example: ``"pyxis"``
    """
    gpu_request: GpuRequest = "gres"
    """How to request GPUs: with `--gres=gpu:8`, with `--gpus-per-node=8`, or not at all. If the runs use GPUs,
    jobs of shared tasks request one GPU, because some partitions reject jobs without GPUs. Example: ``"none"``
    """
    account: str | None = _text(_from_environment("SBATCH_ACCOUNT", "SLURM_ACCOUNT"))
    """Account of the jobs. Default: SBATCH_ACCOUNT or SLURM_ACCOUNT in the environment of llmb, else of the
    login on the host. Example: ``"my_account"``
    """
    partition: str | None = _text(_from_environment("SBATCH_PARTITION", "SLURM_PARTITION"))
    """Partition of the jobs. Default: SBATCH_PARTITION or SLURM_PARTITION, as for `account`. Example: ``"batch"``"""
    qos: str | None = _text()
    """`sbatch --qos`. Default: none. Example: ``"high"``"""
    reservation: str | None = _text()
    """`sbatch --reservation`. Default: none. Example: ``"acceptance"``"""
    nodelist: str | None = _text()
    """`sbatch --nodelist`. Default: none. Example: ``"node[001-008]"``"""
    exclude: str | None = _text()
    """`sbatch --exclude`. Default: none. Example: ``"node007"``"""
    constraint: str | None = _text()
    """`sbatch --constraint`. Default: none. Example: ``"gpu&memory"``"""
    dependency: str | None = _text()
    """`sbatch --dependency`. llmb cancels a job whose dependency can never be satisfied. `"singleton"` has no
    effect, because each job has its own name: set `max_jobs = 1`. Default: none. Example: ``"afterok:123"``
    """
    nice: int | None = None
    """`sbatch --nice`. Default: none. Example: ``100``"""
    mem: str = attrs.field(default="0", validator=_memory)
    """Memory per node; 0 means all of it. `"none"` means no `sbatch --mem`, which some sites reject: the cluster's
    default applies, or `mem-per-cpu` or `mem-per-gpu` in `sbatch`. Example: ``"900G"``
    """
    exclusive: bool = True
    """Allocate complete nodes. Example: ``false``"""
    mpi: str | None = _text()
    """`srun --mpi`. Default: what the recipe states (`pmix`), else the cluster's default. Example: ``"pmi2"``"""
    wait: NonNegativeInt = 60
    """`srun --wait`: seconds between the end of the first rank and the end of the phase; 0 means no limit.
    It does not apply to shared tasks. Example: ``120``
    """
    kill_on_bad_exit: bool = True
    """`srun --kill-on-bad-exit`: a failed rank ends the phase. Example: ``false``"""
    segment: bool = True
    """Pass `--segment` for runs that need complete NVLink domains; set false if Slurm is older than 24.05.
    Example: ``false``
    """
    sbatch: Mapping[str, bool | int | float | str] = attrs.field(factory=FrozenMap, validator=_check_sbatch)
    """Any further options of sbatch: `contiguous = true` is a flag without a value. Default: empty. Example:
    ``{ licenses = "a:1" }``
    """
