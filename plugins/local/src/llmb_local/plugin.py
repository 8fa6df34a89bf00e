"""The local scheduler: jobs queue for this machine and run in containers, in a virtual environment, or directly."""

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence

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
    Signature,
    SpecError,
    Target,
    Task,
    cancel_detached,
    format_value,
    hookimpl,
    poll_detached,
    read_signatures,
    submit_detached,
    unpassed_variables_note,
)
from llmb_local.bash_files import bash_file
from llmb_local.cpu_peak import PEAKS_FOLDER
from llmb_local.doctor_checks import check_machine
from llmb_local.gpus import check_toolkit, is_probed, machine_gpus
from llmb_local.job_script import job_script, lock_word, phase_logs
from llmb_local.options import LocalOptions, RuntimeName
from llmb_local.runtimes.choose_runtime import ENGINES, choose_runtime, load_runtime
from llmb_local.runtimes.container_cleanup import remove_containers


class Local(SchedulerHooks[LocalOptions]):
    """Scheduler whose jobs are detached processes of this machine.

    Jobs outlive ``llmb`` and keep their exit code on disk.
    """

    options = LocalOptions
    single_node = True
    poll_interval_s = (0.05, 0.5)  # each poll starts a shell, which takes time from a training on all cores

    def __init__(self) -> None:
        self._submitted: dict[str, None] = {}  # the directories of the jobs that this process has submitted, in order

    @hookimpl
    def host(self, target: Target[LocalOptions]) -> None:
        """Return None, for this machine. Raise SpecError if the target names a host."""
        if target.host is not None:
            message = f"the local scheduler runs jobs on this machine only, not on {format_value(target.host)}"
            raise SpecError(Fault(message=message, key="target.host", expected="no such key, or another scheduler"))

    @hookimpl
    def prepare_env(self, environment: Environment, target: Target[LocalOptions]) -> tuple[Task, ...]:
        """Return the task that pulls the image or creates the virtual environment."""
        return load_runtime(choose_runtime(environment, target)).tasks(environment, target)

    @hookimpl
    def prepare_dataset(self, dataset: Dataset, target: Target[LocalOptions]) -> Dataset:
        """Run the ranks of all nodes on this machine."""
        return dataset.on_one_node()

    @hookimpl
    def build_job(self, job: Job, target: Target[LocalOptions]) -> Script:
        """Return a bash script that waits for its turn and for GPUs, then starts every rank of every phase."""
        if job.nodes != 1:
            raise SpecError(f"the job needs {job.nodes} nodes, but the local scheduler has one")
        if job.mpi and not job.mpi_optional:
            message = f"the job needs an MPI launcher ({job.mpi}), which the local scheduler does not have"
            raise SpecError(Fault(message=message, key="target.scheduler", expected="a scheduler that has one"))
        name = choose_runtime(job.environment, target)
        gpus = machine_gpus(job, target)
        if job.gpus_per_node and name in ENGINES:
            check_toolkit(name, target)
        where = _where(name, job.environment)
        return Script(
            id=job.id,
            directory=job.directory,
            text=job_script(job, target, load_runtime(name), where=where, machine_gpus=gpus),
            files=job.files,
            logs=phase_logs(job),
            provenance_file=f"{job.directory}/provenance",
            attempts_file=f"{job.directory}/attempts",
            notes=_notes(name, job, target),
            time_limit_s=job.time_limit_s,
            grace_s=target.options.grace_s + 30,  # more than the grace after which the script ends its ranks
            reserved_files=("arriving", "after", "container", "enroot.conf", "finished"),
        )

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the causes of failure that container engines report."""
        return read_signatures("llmb_local", "signatures.toml")

    @hookimpl
    def probe(self, target: Target[LocalOptions]) -> str:
        """Return the probe of container engines and GPUs, and, if a run uses CPUs, of the peak of the CPU.

        The peak is measured once and kept.
        """
        probe_all = "" if target.gpu_types else "yes"  # for llmb doctor, not for a run
        probe_gpus = "yes" if target.gpu_types != ("cpu",) else ""
        settings = f"engines=({' '.join(_engines(target))}) probe_all={probe_all} probe_gpus={probe_gpus}"
        parts = [settings, bash_file("runtimes/container_errors.sh"), bash_file("probe.sh")]
        if "cpu" in target.gpu_types:
            measure = shlex.join([sys.executable, "-m", "llmb_local.cpu_peak"])
            parts.append(f"{measure} {PEAKS_FOLDER} {lock_word(target.options.lock)}")
        return "\n".join(parts)

    @hookimpl
    def checks(self, target: Target[LocalOptions], host: Host, scripts: Sequence[Script]) -> Sequence[DoctorCheck]:
        """Return the checks of container engines, their disk space, GPUs, and GPU access from containers."""
        return check_machine(target)

    @hookimpl
    def peak_flops(self, gpu_type: str, dtype: str, target: Target[LocalOptions]) -> float | None:
        """Return the measured peak of all cores divided by the number of processes."""
        peak = target.facts.get(f"peak_flops.{dtype}") if gpu_type == "cpu" else None
        return float(peak) / (target.gpus_per_node or 1) if peak else None

    @hookimpl
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Start each job as a detached process, which queues behind the previous one by itself.

        A job that this process submits again waits for none, so that no two jobs wait for each other.
        """
        jobs: list[Script] = []
        previous = next(reversed(self._submitted), "")
        for script in scripts:
            jobs.append(_after("" if script.directory in self._submitted else previous, script))
            previous = script.directory
        handles = submit_detached(jobs, host)
        self._submitted.update(dict.fromkeys(script.directory for script in scripts))
        return handles

    @hookimpl
    def poll(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Query all jobs with one command, and remove the containers of killed jobs."""
        statuses = poll_detached(handles, host)
        ended = [handle for handle in handles if statuses[handle.id].state == "ended"]
        remove_containers([handle for handle in ended if statuses[handle.id].cause != "completed"], host)
        return statuses

    @hookimpl
    def cancel(self, handles: Sequence[JobHandle], host: Host) -> None:
        """Send SIGTERM, then SIGKILL, to all processes of these jobs."""
        cancel_detached(handles, host)


def _engines(target: Target[LocalOptions]) -> tuple[RuntimeName, ...]:
    """Return the engines that a run may need."""
    wanted = target.options.runtime
    if not target.uses_images or wanted in ("venv", "none"):
        return ()
    return ENGINES if wanted is None else (wanted,)


def _after(before: str, script: Script) -> Script:
    """Add a file that names the directory of the previous job, if any."""
    return attrs.evolve(script, files={**script.files, f"{script.directory}/after": f"{before}\n"})


def _where(name: RuntimeName, environment: Environment) -> str:
    """Describe what runs the phases."""
    if isinstance(environment.base, Image) and name in ENGINES:
        return f"in {name}, image {environment.base.ref}"
    return {"venv": "in a virtual environment", "none": "in the user's own environment"}[name]


def _notes(name: RuntimeName, job: Job, target: Target[LocalOptions]) -> tuple[str, ...]:
    """Warn of exported variables that containers do not get, and describe the engine if llmb chose it.

    Before the probe, it is unknown which engines work.
    """
    if name not in ENGINES:
        return ()
    notes = unpassed_variables_note(job, os.environ)
    base = job.environment.base
    if target.options.runtime is not None or (isinstance(base, Image) and base.file):
        return notes
    if not is_probed(target):
        best = f"the first of {', '.join(ENGINES)} that works on this machine"
        return (*notes, f"target.runtime is not set: images run in {best}; this script is for {name}")
    version = target.facts.get(f"{name}.version", "")
    return (*notes, f"target.runtime is not set: images run in {' '.join([name, version]).strip()}")
