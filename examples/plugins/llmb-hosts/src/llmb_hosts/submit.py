"""Submission: start a job on each of its hosts. The first host keeps the status of the job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import attrs

from llmb import FrozenMap, Host, JobHandle, Script, submit_detached

REMEDY = "name a folder that all of target.hosts share: `llmb run SPEC --set target.workdir=/path/to/folder`"


def submit_jobs(scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
    """Start each job on its hosts, on the first host last, and return a handle for every job.

    The phases begin once all hosts have started. A job whose directory another host does not see is rejected. Raise
    TargetError if a host cannot be reached.
    """
    parts: dict[str, dict[str, Script]] = {}
    for script in scripts:
        for number, name in enumerate(script.hosts, 1):
            parts.setdefault(name, {})[script.id] = _part(script, number)
    host.put({f"{part.directory}/host": name for name, own in parts.items() for part in own.values()})
    blind = {identity: name for name, own in parts.items() for identity in _unseen(own, host.peer(name))}
    for name, own in parts.items():
        submit_detached([part for identity, part in own.items() if identity not in blind], host.peer(name))
    started = submit_detached([script for script in scripts if script.id not in blind], host)
    return {**started, **{script.id: _rejected(script, blind[script.id]) for script in scripts if script.id in blind}}


def _part(script: Script, number: int) -> Script:
    """Return the script for another host, with its own directory. The first host enforces the time limit."""
    directory = f"{script.directory}/nodes/{number}"
    return attrs.evolve(
        script, id=f"{script.id}.{number}", directory=directory, files=FrozenMap(), time_limit_s=None, hosts=()
    )


def _unseen(parts: Mapping[str, Script], host: Host) -> list[str]:
    """Return the ids of the jobs whose directory, created by the first host, is not visible on this host."""
    tests = (f"[ -e {shlex.quote(part.directory)}/host ] || echo {identity}" for identity, part in parts.items())
    return host.run("\n".join(tests)).stdout.split()


def _rejected(script: Script, name: str) -> JobHandle:
    refused = f"{name} does not see {script.directory}"
    return JobHandle(id=script.id, directory=script.directory, refused=refused, remedy=REMEDY)
