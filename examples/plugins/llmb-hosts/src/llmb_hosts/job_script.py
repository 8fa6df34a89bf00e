"""The bash script of a job, which is the same on each of its hosts, and the paths of its logs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from llmb import (
    FrozenMap,
    Job,
    Phase,
    Target,
    Venv,
    assignments,
    environment_function,
    job_functions,
    resource_text,
    venv_folder,
)
from llmb_hosts.options import HostsOptions


def job_script(job: Job, hosts: tuple[str, ...], target: Target[HostsOptions]) -> str:
    """Return the script: settings with every value quoted, the functions of job_script.sh, and the phases."""
    return "\n".join([*_settings(job, hosts, target), resource_text("llmb_hosts", "job_script.sh"), *_phases(job)])


def _settings(job: Job, hosts: tuple[str, ...], target: Target[HostsOptions]) -> Iterator[str]:
    base, options = job.environment.base, target.options
    venv = venv_folder(base, target.cache) if isinstance(base, Venv) and options.runtime is None else ""
    values = {
        "run_dir": job.directory,
        "job_id": job.id,
        "per_node": str(job.tasks_per_node),
        "master_addr": options.master_addr or "",
        "lost_after_s": str(options.lost_after_s),
        "grace_s": str(options.grace_s),
    }
    yield "#!/usr/bin/env bash"
    yield f"# {job.id}: {job.tasks_per_node} processes on each of {', '.join(hosts)}"
    yield assignments(**values)
    yield f"hosts=({shlex.join(hosts)})"
    yield f"secrets=({shlex.join(job.environment.secrets)})"
    yield f"lock_order=({' '.join(str(hosts.index(name)) for name in sorted(hosts))}) # equal for all jobs"
    yield environment_function(job, venv=venv)
    yield job_functions()


def _phases(job: Job) -> Iterator[str]:
    for phase in job.phases:
        place = "inside" if phase.contained else "outside"
        yield f"phase {shlex.join([phase.name, phase.ranks, place, *phase.words])}"
        yield from (f'[ "$node" != 0 ] || check_output {shlex.join([phase.name, path])} 5' for path in phase.outputs)


def phase_logs(job: Job) -> Mapping[str, tuple[str, ...]]:
    """Return the log of the first host, and one log per phase and rank."""
    logs = {phase.name: tuple(_rank_logs(job, phase)) for phase in job.phases}
    return FrozenMap({"llmb-hosts": (f"{job.directory}/out.log",), **logs})


def _rank_logs(job: Job, phase: Phase) -> Iterator[str]:
    ranks = {"all": job.nodes * job.tasks_per_node, "node": job.nodes, "first": 1}[phase.ranks]
    yield from (f"{job.directory}/logs/{phase.name}.{{attempt}}.{rank}.log" for rank in range(ranks))
