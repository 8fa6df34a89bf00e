"""Checks of a job on a Slurm cluster for ``llmb doctor``, from the output of probe.sh.

A check that cannot be made has ``ok=None``, with the reason as its detail.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from llmb import DoctorCheck, Job, Target
from llmb_slurm.doctor_checks.cluster_facts import available_partitions, must_fit_all, partition_setting, partitions
from llmb_slurm.doctor_checks.nodes import check_nodes
from llmb_slurm.doctor_checks.nvlink_domain import check_imex, check_nvlink_domain
from llmb_slurm.doctor_checks.partition import open_partitions
from llmb_slurm.doctor_checks.remedies import or_set_in_target
from llmb_slurm.options import SlurmOptions
from llmb_slurm.parse_squeue_sacct import parse_duration_s

UNITS_MB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}


def check_job(job: Job, target: Target[SlurmOptions]) -> Iterator[DoctorCheck]:
    """Yield the checks of time limit, nodes, GPUs, memory, MPI and NVLink domains. None if Slurm does not respond."""
    facts, options = target.facts, target.options
    if not facts.get("slurm") or "unreachable" in facts:
        return
    if any(f"partition.{name}" not in facts for name in partitions(target)):
        return
    names = open_partitions(target)
    yield _time_limit(job, facts, partitions(target) if must_fit_all(facts) else names)
    yield check_nodes(job, target, names)
    yield from _memory(options.mem, facts, names)
    if mpi := options.mpi or job.mpi:
        yield _mpi(mpi, facts)
    if job.domain_nodes and options.segment:
        yield check_nvlink_domain(job, job.domain_nodes, facts, names)
    if job.domain_nodes:
        yield check_imex(facts, names[0])


def _time_limit(job: Job, facts: Mapping[str, str], names: Sequence[str]) -> DoctorCheck:
    limits = {name: facts[f"partition.{name}"].split("|")[1] for name in names}
    wanted = f"{-(-job.time_limit_s // 60)} minutes"
    fits = {name: (parse_duration_s(text) or job.time_limit_s) >= job.time_limit_s for name, text in limits.items()}
    detail = f"{wanted}; {', '.join(f'{name} allows {text}' for name, text in limits.items())}"
    enough = all(fits.values()) if must_fit_all(facts) else any(fits.values())
    remedy = "" if enough else _lower_limit(facts, limits, job.time_limit_s)
    return DoctorCheck(name="time limit", ok=not remedy, detail=detail, remedy=remedy)


def _lower_limit(facts: Mapping[str, str], limits: Mapping[str, str], wanted_s: int) -> str:
    """Return the lines of the spec with which a job fits: the highest time limit, or another partition."""
    limits_s = [limit_s for text in limits.values() if (limit_s := parse_duration_s(text))]
    highest_s = min(limits_s) if must_fit_all(facts) else max(limits_s)
    others = [
        name
        for name, fact in available_partitions(facts).items()
        if (parse_duration_s(fact.split("|")[1]) or wanted_s) >= wanted_s
    ]
    return f'set `time_limit = "{highest_s // 60}m"` in [workload]' + or_set_in_target("partition", others)


def _memory(wanted: str, facts: Mapping[str, str], names: Sequence[str]) -> Iterator[DoctorCheck]:
    """Yield a check if every partition limits the memory per node to less than the job requests.

    `sbatch --test-only` accepts such a job, which then waits forever.
    """
    limits = {name: partition_setting(facts, name, "MaxMemPerNode") for name in names}
    if not all(limit.isdigit() for limit in limits.values()):
        return
    highest_mb = max(map(int, limits.values()))
    requested_mb = _parse_size_mb(wanted)
    if requested_mb is None or 0 < requested_mb <= highest_mb:
        return
    requested = f"mem is {wanted}" if requested_mb else "the job requests all memory of its nodes"
    detail = f"{requested}; {', '.join(f'{name} allows {limit} MB per node' for name, limit in limits.items())}"
    remedy = f'set `mem = "{highest_mb}M"` in [target]'
    yield DoctorCheck(name="memory", ok=False, detail=detail, remedy=remedy)


def _parse_size_mb(text: str) -> float | None:
    """Return a size of Slurm such as 900G in MB, which is the default unit, or None for any other text."""
    found = re.fullmatch(r"(\d+)([KMGT]?)B?", text, re.IGNORECASE)
    return int(found[1]) * UNITS_MB[found[2].upper()] if found else None


def _mpi(wanted: str, facts: Mapping[str, str]) -> DoctorCheck:
    known = facts.get("mpi", "").split()
    if not known:
        return DoctorCheck(name="MPI", ok=None, detail=f"`srun --mpi=list` lists no types; the job needs {wanted}")
    if wanted in known:
        return DoctorCheck(name="MPI", ok=True, detail=f"srun supports {wanted}")
    family = wanted.partition("_")[0]  # of pmix_v4, pmix
    others = [each for each in known if each not in ("none", "cray_shasta")]  # the latter is for the MPI of a Cray
    others.sort(key=lambda each: each.partition("_")[0] != family)
    remedy = f"have the site install Slurm's plugin for {wanted}" + or_set_in_target("mpi", others)
    return DoctorCheck(name="MPI", ok=False, detail=f"srun supports {', '.join(known)}, not {wanted}", remedy=remedy)
