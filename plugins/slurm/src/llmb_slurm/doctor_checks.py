"""Checks of a Slurm cluster for ``llmb doctor``, from the output of probe.sh."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from llmb import DoctorCheck, Target
from llmb_slurm.options import SlurmOptions

MAX_CLOCK_DIFFERENCE_S = 30


def checks(target: Target[SlurmOptions]) -> Iterator[DoctorCheck]:
    """Yield the checks of Slurm, the partition and its GPUs, the account, containers and the clock."""
    facts = target.facts
    yield _slurm(facts)
    if facts.get("slurm") and "unreachable" not in facts:
        yield _partition(facts, target.options)
        yield _account(facts, target.options)
    if facts.get("slurm") and target.options.runtime in (None, "pyxis"):
        yield _pyxis(facts)
        where = facts.get("enroot") or "not on this host; images are imported on a compute node, which needs enroot"
        yield DoctorCheck(name="enroot", ok=True, detail=where)
    yield _clock(facts)


def _slurm(facts: Mapping[str, str]) -> DoctorCheck:
    version = facts.get("slurm", "")
    if not version:
        remedy = "set target.host to a login node of the cluster that has sbatch on its PATH"
        return DoctorCheck(name="Slurm", ok=False, detail="Slurm's commands are not installed", remedy=remedy)
    if "unreachable" in facts:
        detail = f"{version}: {facts['unreachable']}"
        return DoctorCheck(name="Slurm", ok=False, detail=detail, remedy="try again later, or contact the site")
    return DoctorCheck(name="Slurm", ok=True, detail=version)


def _partition(facts: Mapping[str, str], options: SlurmOptions) -> DoctorCheck:
    """Check the partitions of the jobs. Slurm accepts several, separated by commas."""
    existing = {key.partition(".")[2]: value for key, value in facts.items() if key.startswith("partition.")}
    names = (options.partition or facts.get("default_partition", "")).split(",")
    missing = [name for name in names if name not in existing]
    if missing:
        detail = f"{missing[0]} does not exist" if missing[0] else "the cluster has no default partition"
        remedy = f"set target.partition to one of {', '.join(sorted(existing))}"
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    detail = "; ".join(_described(name, existing[name]) for name in names)
    if down := [name for name in names if not existing[name].startswith("up|")]:
        remedy = f"{down[0]} is down; try again later, or set target.partition to another partition"
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    if options.gpu_request != "none" and not any("gpu" in existing[name].rpartition("|")[2] for name in names):
        remedy = 'set target.gpu_request = "none" if Slurm does not manage GPUs, or target.partition to one with GPUs'
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    return DoctorCheck(name="partition", ok=True, detail=detail)


def _described(name: str, fact: str) -> str:
    _, limit, nodes, gres = fact.split("|", 3)
    gpus = gres if "gpu" in gres else "no GPUs known to Slurm"
    return f"{name}: {nodes} nodes, {gpus}, time limit {limit}"


def _account(facts: Mapping[str, str], options: SlurmOptions) -> DoctorCheck:
    accounts = [each for each in facts.get("accounts", "").split(",") if each]
    if not accounts:
        return DoctorCheck(name="account", ok=True, detail="Slurm reports no accounts")
    if options.account and options.account not in accounts:
        remedy = f"set target.account to one of {', '.join(accounts)}"
        detail = f"you may not use the account {options.account}"
        return DoctorCheck(name="account", ok=False, detail=detail, remedy=remedy)
    return DoctorCheck(name="account", ok=True, detail=options.account or f"the default of {', '.join(accounts)}")


def _pyxis(facts: Mapping[str, str]) -> DoctorCheck:
    if facts.get("pyxis") == "yes":
        return DoctorCheck(name="pyxis", ok=True, detail="srun supports container images")
    remedy = 'have the site install pyxis, or set target.runtime to "venv" or "none" for recipes without an image'
    return DoctorCheck(name="pyxis", ok=False, detail="srun does not support container images", remedy=remedy)


def _clock(facts: Mapping[str, str]) -> DoctorCheck:
    if not facts.get("clock", "").isdigit():
        return DoctorCheck(name="clock", ok=False, detail="cannot read the clock", remedy="run `date +%s` on the host")
    difference_s = abs(int(facts["clock"]) - int(time.time()))
    ok = difference_s <= MAX_CLOCK_DIFFERENCE_S
    detail = f"differs from the clock of this machine by {difference_s} s"
    return DoctorCheck(name="clock", ok=ok, detail=detail, remedy="" if ok else "synchronise both clocks with NTP")
