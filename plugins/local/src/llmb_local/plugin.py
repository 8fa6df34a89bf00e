"""The local scheduler: jobs take turns on this machine, in containers, in a virtual environment, or as they are."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence

import attrs

from llmb import (
    Dataset,
    DoctorCheck,
    Environment,
    Fault,
    Host,
    Image,
    Job,
    JobHandle,
    JobStatus,
    SchedulerHooks,
    Script,
    SpecError,
    Target,
    TargetError,
    Task,
    cancel_detached,
    hookimpl,
    poll_detached,
    shown,
    submit_detached,
)
from llmb_local.bash import library
from llmb_local.checks import checks
from llmb_local.leftovers import remove_leftovers
from llmb_local.machine import TOOLKIT_REMEDY, machine_gpus, probed
from llmb_local.options import LocalOptions, RuntimeName
from llmb_local.runtimes.choose import ENGINES, choose_runtime, runtime
from llmb_local.script import job_script, lock_word, phase_logs


class Local(SchedulerHooks[LocalOptions]):
    """Jobs are detached processes of this machine: they outlive ``llmb``, and leave their exit status on disk."""

    options = LocalOptions
    single_node = True
    poll_interval_s = (0.05, 0.25)

    @hookimpl
    def host(self, target: Target[LocalOptions]) -> None:
        """This machine, and no other."""
        if target.host is not None:
            message = f"is {shown(target.host)}, and the local scheduler runs jobs on this machine only"
            raise SpecError(Fault(message=message, key="target.host", expected="no such key, or another scheduler"))

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """A virtual environment is made by uv, an image pulled by the container engine."""
        return runtime(choose_runtime(environment, target)).tasks(environment, target)

    @hookimpl
    def prepare_dataset(self, dataset: Dataset, target: Target[LocalOptions]) -> Dataset:
        """The ranks of several nodes, all on this one."""
        return dataset.on_one_node()

    @hookimpl
    def build_job(self, job: Job, target: Target[LocalOptions]) -> Script:
        """A bash script that waits for its turn, then starts every rank of every phase itself."""
        if job.nodes != 1:
            raise SpecError(f"the job needs {job.nodes} nodes, and the local scheduler has one")
        name = choose_runtime(job.environment, target)
        gpus = machine_gpus(job, target)
        if job.gpus_per_node and name in ENGINES:
            _refuse_without_toolkit(name, target)
        where = _where(name, job.environment)
        return Script(
            id=job.id,
            directory=job.directory,
            text=job_script(job, target, runtime(name), where=where, machine_gpus=gpus),
            files=job.files,
            logs=phase_logs(job),
            provenance=f"{job.directory}/provenance",
            notes=_notes(name, target),
            time_limit_s=job.time_limit_s,
            grace_s=target.options.grace_s + 30,  # the script itself ends its ranks after theirs
        )

    @hookimpl
    def probe(self, target: Target[LocalOptions]) -> str:
        """Container engines and GPUs; the peak of the CPU, measured once and kept, where a run asks for one."""
        ask_all = "" if target.gpu_types else "yes"  # no run asks, but llmb doctor
        look_for_gpus = "yes" if target.gpu_types != ("cpu",) else ""
        settings = f"engines=({' '.join(_engines(target))}) ask_all={ask_all} look_for_gpus={look_for_gpus}"
        parts = [settings, library("refusals.sh"), library("probe.sh")]
        if "cpu" in target.gpu_types:
            measure = [sys.executable, "-m", "llmb_local.cpu_peak", f"{target.cache}/cpu-peak"]
            parts.append(f"{shlex.join(measure)} {lock_word(target.options.lock)}")
        return "\n".join(parts)

    @hookimpl
    def checks(self, target: Target[LocalOptions], host: Host) -> Sequence[DoctorCheck]:
        """Container engines with their disk, GPUs with their driver, and whether containers may have them."""
        return checks(target)

    @hookimpl
    def peak_flops(self, gpu_type: str, dtype: str, target: Target[LocalOptions]) -> float | None:
        """What the probe measured for all cores, shared by the processes that stand for CPUs on this machine."""
        peak = target.facts.get(f"peak_flops.{dtype}") if gpu_type == "cpu" else None
        return float(peak) / (target.gpus_per_node or 1) if peak else None

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Start each job as a detached process; it waits for its turn by itself, after the one before it."""
        before = ("", *(script.directory for script in scripts))
        return submit_detached([_after(*pair) for pair in zip(before, scripts, strict=False)], host)

    @hookimpl
    def poll(self, tickets: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Ask for all of them with one command; what a killed job left behind is removed."""
        seen = poll_detached(tickets, host)
        remove_leftovers([ticket for ticket in tickets if _was_cut_off(seen[ticket.id])], host)
        return seen

    @hookimpl
    def cancel(self, tickets: Sequence[JobHandle], host: Host) -> None:
        """TERM, then KILL, to all processes of these jobs."""
        cancel_detached(tickets, host)


def _engines(target: Target[LocalOptions]) -> tuple[RuntimeName, ...]:
    """Those that a run may need."""
    wanted = target.options.runtime
    if not target.images or wanted in ("venv", "none"):
        return ()
    return ENGINES if wanted is None else (wanted,)


def _after(before: str, script: Script) -> Script:
    """A job that comes after the one in a directory; the first of a submission after none."""
    return attrs.evolve(script, files={**script.files, f"{script.directory}/after": f"{before}\n"})


def _was_cut_off(status: JobStatus) -> bool:
    return status.state == "ended" and status.cause != "completed"


def _where(name: RuntimeName, environment: Environment) -> str:
    """For people: what the phases run in."""
    if isinstance(environment.base, Image) and name in ENGINES:
        return f"in {name}, image {environment.base.ref}"
    return {"venv": "in a virtual environment", "none": "as they are"}[name]


def _notes(name: RuntimeName, target: Target[LocalOptions]) -> tuple[str, ...]:
    """A choice that the user did not make. Before the probe nobody knows which engine works."""
    if target.options.runtime is not None or name not in ENGINES:
        return ()
    if not probed(target):
        best = f"the first of {', '.join(ENGINES)} that works here"
        return (f"no target.runtime is named: images run in {best}; this script is for {name}",)
    version = target.facts.get(f"{name}.version", "")
    return (f"no target.runtime is named: images run in {' '.join([name, version]).strip()}, the best that is here",)


def _refuse_without_toolkit(name: RuntimeName, target: Target[LocalOptions]) -> None:
    """Before an image is pulled for nothing."""
    asked = probed(target) and target.options.machine_gpus is None
    if asked and "nvidia.toolkit" not in target.facts:
        raise TargetError(f"{name} cannot give GPUs to containers here; {TOOLKIT_REMEDY} and start {name} again")
