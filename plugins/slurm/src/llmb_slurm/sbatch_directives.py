"""The #SBATCH directives of a job."""

import re
from collections.abc import Iterator

from llmb import Fault, Job, SpecError, Target, content_key, format_value
from llmb_slurm.options import NO_MEM, OWN_KEYS, SlurmOptions

LOG = "slurm.log"
MARK = "llmb "  # the comment of every job begins so
ANY_MARK = re.compile(MARK + r"\S+ [0-9a-f]{12}")
PLAIN = re.compile(r"[\w@%+=:,./&|!*\[\]-]+", re.ASCII)


def job_mark(job_id: str, directory: str) -> str:
    """Return the comment that a job carries: its id, and a key of its directory.

    Jobs of several work directories may have the same id.
    """
    return f"{MARK}{job_id} {content_key(directory)}"


def directives(job: Job, target: Target[SlurmOptions]) -> list[str]:
    """Return the options of sbatch, one per line.

    sbatch removes quotes like a shell, and expands nothing. Raise SpecError if Slurm cannot carry a value.
    """
    return [
        f"--{name}" if value is True else f"--{name}={_quoted(name, str(value))}" for name, value in _pairs(job, target)
    ]


def _pairs(job: Job, target: Target[SlurmOptions]) -> Iterator[tuple[str, str | int | float | bool]]:
    options = target.options
    yield "job-name", job.id
    yield "comment", job_mark(job.id, job.directory)
    yield "output", _log_pattern(job.directory, target.workdir)
    yield "open-mode", "append"
    yield "nodes", job.nodes
    yield "ntasks-per-node", job.tasks_per_node
    if (gpus := _gpus_per_node(job, target)) and options.gpu_request != "none":
        yield options.gpu_request, f"gpu:{gpus}" if options.gpu_request == "gres" else gpus
    yield "time", _time(job.time_limit_s)
    for name in OWN_KEYS:
        value = getattr(options, name)
        if name != "segment" and value is not None and value is not False and (name, value) != ("mem", NO_MEM):
            yield name, value
    if options.dependency is not None:
        yield "kill-on-invalid-dep", "yes"
    if job.domain_nodes and options.segment:
        yield "segment", job.domain_nodes
    yield from options.sbatch.items()


def _gpus_per_node(job: Job, target: Target[SlurmOptions]) -> int:
    """Return the GPUs to request: at least one if the runs use GPUs, because some partitions reject jobs without."""
    runs_need_gpus = bool(target.gpu_types) and "cpu" not in target.gpu_types
    return job.gpus_per_node or int(runs_need_gpus)


def _log_pattern(directory: str, workdir: str) -> str:
    """Return the absolute path of the log as a Slurm file name pattern, in which ``%`` is escaped."""
    if "\\" in workdir:
        message = f"{format_value(workdir)} contains a backslash, which Slurm removes from the path of a log"
        raise SpecError(Fault(message=message, key="target.workdir", expected="another directory"))
    return f"{directory}/{LOG}".replace("%", "%%")


def _time(seconds: int) -> str:
    """Format a time limit as hours, minutes and seconds. Slurm rounds it up to full minutes."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _quoted(name: str, value: str) -> str:
    if PLAIN.fullmatch(value):
        return value
    if not value.isprintable():
        raise SpecError(
            f"--{name}: invalid value {format_value(value)}; Slurm supports only printable text of one line"
        )
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
