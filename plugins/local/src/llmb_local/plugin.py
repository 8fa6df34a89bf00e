"""The local scheduler: one job at a time on this machine, one process per task, in a virtual environment or none."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence

import attrs

from llmb import (
    Dataset,
    Environment,
    Host,
    Image,
    Job,
    JobStatus,
    PositiveInt,
    SchedulerHooks,
    Script,
    SpecError,
    Target,
    Task,
    Ticket,
    Venv,
    cancel_detached,
    hookimpl,
    poll_detached,
    submit_detached,
    venv_task,
)
from llmb_local.script import job_script, lock_word, phase_logs

GRACE_S = PositiveInt(10)


@attrs.frozen(kw_only=True)
class LocalOptions:
    """Keys of [target] for ``scheduler = "local"``.

    ``lock`` is the file whose lock makes the jobs of all ``llmb`` processes of this user take turns on this machine;
    ``$HOME`` and ``$HOSTNAME`` in it mean what they mean to bash. ``grace_s`` is how many seconds a process may go on
    after it was told to end; then it is killed.
    """

    lock: str = "$HOME/.cache/llmb-$HOSTNAME.lock"
    grace_s: PositiveInt = GRACE_S


class Local(SchedulerHooks[LocalOptions]):
    """Jobs are detached processes of this machine: they outlive ``llmb``, and leave their exit status on disk."""

    options = LocalOptions
    single_node = True
    poll_interval_s = (0.05, 0.25)

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """A virtual environment is made by uv, once for each lock file."""
        if isinstance(environment.base, Image):
            raise SpecError(
                f"the recipe runs in the image {environment.base.ref}, "
                "and this version of llmb-local has no container runtime"
            )
        if not isinstance(environment.base, Venv):
            return ()
        import uv  # its folder is where the program is; not needed to poll

        return (venv_task(environment.base, target.cache, uv=uv.find_uv_bin(), python=sys.executable),)

    @hookimpl
    def prepare_dataset(self, dataset: Dataset, target: Target[LocalOptions]) -> Dataset:
        """The ranks of several nodes, all on this one."""
        return Dataset(tasks=tuple(map(_on_one_node, dataset.tasks)))

    @hookimpl
    def build_job(self, job: Job, target: Target[LocalOptions]) -> Script:
        """A bash script that waits for its turn, then starts every rank of every phase itself."""
        if target.host is not None:
            raise SpecError(f"target.host is {target.host!r}, and the local scheduler runs on this machine only")
        if job.nodes != 1:
            raise SpecError(f"the job needs {job.nodes} nodes, and the local scheduler has one")
        return Script(
            id=job.id,
            directory=job.directory,
            text=job_script(job, target.cache, lock=target.options.lock, grace_s=target.options.grace_s),
            files=job.files,
            logs=phase_logs(job),
            time_limit_s=job.time_limit_s,
        )

    @hookimpl
    def probe(self, target: Target[LocalOptions]) -> str:
        """The peak of this machine's CPU, measured once and kept, where a run asks for one."""
        if "cpu" not in target.gpu_types:
            return ""
        measure = [sys.executable, "-m", "llmb_local.cpu_peak", f"{target.cache}/cpu-peak"]
        return f"{shlex.join(measure)} {lock_word(target.options.lock)}"

    @hookimpl
    def peak_flops(self, gpu_type: str, dtype: str, target: Target[LocalOptions]) -> float | None:
        """What the probe measured for all cores, shared by the processes that stand for CPUs on this machine."""
        peak = target.facts.get(f"peak_flops.{dtype}") if gpu_type == "cpu" else None
        return float(peak) / (target.gpus_per_node or 1) if peak else None

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, Ticket]:
        """Start each job as a detached process; it queues for the machine's lock by itself."""
        return submit_detached(scripts, host)

    @hookimpl
    def poll(self, tickets: Sequence[Ticket], host: Host) -> Mapping[str, JobStatus]:
        """Ask for all of them with one command."""
        return poll_detached(tickets, host)

    @hookimpl
    def cancel(self, tickets: Sequence[Ticket], host: Host) -> None:
        """TERM, then KILL, to all processes of these jobs."""
        cancel_detached(tickets, host)


def _on_one_node(task: Task) -> Task:
    if isinstance(task.work, str) or task.work.nodes == 1:
        return task
    ranks = task.work.nodes * task.work.tasks_per_node
    return attrs.evolve(task, work=attrs.evolve(task.work, nodes=1, tasks_per_node=ranks))
