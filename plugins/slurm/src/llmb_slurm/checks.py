"""What `llmb doctor` tells of a Slurm cluster, from what probe.sh found there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from llmb import DoctorCheck, Target
from llmb_slurm.options import SlurmOptions

CLOCKS_MAY_DIFFER_S = 30


def checks(target: Target[SlurmOptions]) -> Iterator[DoctorCheck]:
    """Slurm itself, the partition and its GPUs, the account, containers, the clock: what can be known of them."""
    facts = target.facts
    yield _slurm(facts)
    if facts.get("slurm") and "unreachable" not in facts:
        yield _partition(facts, target.options)
        yield _account(facts, target.options)
    if facts.get("slurm") and target.options.runtime in (None, "pyxis"):
        yield _pyxis(facts)
        where = facts.get("enroot") or "not on this host; images are imported on a compute node, where it has to be"
        yield DoctorCheck(name="enroot", ok=True, detail=where)
    yield _clock(facts)


def _slurm(facts: Mapping[str, str]) -> DoctorCheck:
    version = facts.get("slurm", "")
    if not version:
        remedy = "name a login node of the cluster as target.host, with sbatch on the PATH of a login there"
        return DoctorCheck(name="Slurm", ok=False, detail="its commands are not there", remedy=remedy)
    if "unreachable" in facts:
        return DoctorCheck(
            name="Slurm", ok=False, detail=f"{version}: {facts['unreachable']}", remedy="wait, or ask the site"
        )
    return DoctorCheck(name="Slurm", ok=True, detail=version)


def _partition(facts: Mapping[str, str], options: SlurmOptions) -> DoctorCheck:
    """The partitions that jobs would go to; Slurm takes several, with commas."""
    there = {key.partition(".")[2]: value for key, value in facts.items() if key.startswith("partition.")}
    names = (options.partition or facts.get("default_partition", "")).split(",")
    missing = [name for name in names if name not in there]
    if missing:
        detail = f"{missing[0]} is not there" if missing[0] else "there is no default partition"
        remedy = f"set target.partition to one of {', '.join(sorted(there))}"
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    detail = "; ".join(_described(name, there[name]) for name in names)
    if down := [name for name in names if not there[name].startswith("up|")]:
        return DoctorCheck(
            name="partition", ok=False, detail=detail, remedy=f"{down[0]} is not up; wait, or use another"
        )
    if options.gpu_request != "none" and not any("gpu" in there[name].rpartition("|")[2] for name in names):
        remedy = 'set target.gpu_request = "none" where Slurm knows of no GPUs, or target.partition to one with GPUs'
        return DoctorCheck(name="partition", ok=False, detail=detail, remedy=remedy)
    return DoctorCheck(name="partition", ok=True, detail=detail)


def _described(name: str, fact: str) -> str:
    _, limit, nodes, gres = fact.split("|", 3)
    gpus = gres if "gpu" in gres else "no GPUs that Slurm knows of"
    return f"{name}: {nodes} nodes, {gpus}, at most {limit}"


def _account(facts: Mapping[str, str], options: SlurmOptions) -> DoctorCheck:
    accounts = [each for each in facts.get("accounts", "").split(",") if each]
    if not accounts:
        return DoctorCheck(name="account", ok=True, detail="Slurm keeps no accounts, or does not tell of them")
    if options.account and options.account not in accounts:
        remedy = f"set target.account to one of {', '.join(accounts)}"
        return DoctorCheck(name="account", ok=False, detail=f"{options.account} is none of yours", remedy=remedy)
    return DoctorCheck(name="account", ok=True, detail=options.account or f"the default one of {', '.join(accounts)}")


def _pyxis(facts: Mapping[str, str]) -> DoctorCheck:
    if facts.get("pyxis") == "yes":
        return DoctorCheck(name="pyxis", ok=True, detail="srun takes container images")
    remedy = 'have pyxis installed, or set target.runtime to "venv" or "none" for recipes that need no image'
    return DoctorCheck(name="pyxis", ok=False, detail="srun takes no container images", remedy=remedy)


def _clock(facts: Mapping[str, str]) -> DoctorCheck:
    if not facts.get("clock", "").isdigit():
        return DoctorCheck(name="clock", ok=False, detail="it could not be read", remedy="see why date fails there")
    ahead_s = int(facts["clock"]) - int(time.time())
    detail = f"differs by {abs(ahead_s)} s from this machine's"
    ok = abs(ahead_s) <= CLOCKS_MAY_DIFFER_S
    return DoctorCheck(name="clock", ok=ok, detail=detail, remedy="" if ok else "set one of the two clocks right")
