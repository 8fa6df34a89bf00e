"""The session of started or attached runs, put together from their parts."""

import resource
from collections.abc import Sequence

from llmb.drive.effects import EffectRunner
from llmb.drive.session import Session
from llmb.drive.session_run import SessionRun
from llmb.drive.target_group import Groups, group_key
from llmb.drive.target_loop import TargetLoop
from llmb.hosts.host_connections import HostConnections
from llmb.plugins.registry import PluginRegistry
from llmb.records.create_records import SweepRecorder
from llmb.records.record import RunRecord

SPARE_FILES = 256
"""Files that this process may need to open besides one lock per run."""


def ignore_activity(activity: str) -> None:
    """Show nothing of what llmb does before runs are followed."""


def build_session(
    records: Sequence[RunRecord],
    runs: Sequence[SessionRun],
    groups: Groups,
    hosts: HostConnections,
    registry: PluginRegistry,
    notes: list[str],
    *,
    recorder: SweepRecorder | None = None,
    errors: Sequence[Exception] = (),
) -> Session:
    """Return a session that drives the unfinished ``runs`` of each target, with the results of all ``records``.

    ``recorder`` is that of new runs.
    """
    _allow_open_files(len(runs))  # a lock per run
    loops = []
    for key, group in groups.items():
        of_group = [run for run in runs if group_key(run.plan.target) == key]
        loops.append(TargetLoop(EffectRunner(group, of_group, registry), recorder))
    return Session(records, loops, hosts, recorder=recorder, notes=notes, errors=errors)


def _allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        highest = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
