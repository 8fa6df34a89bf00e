"""Starting runs: planning, checking the target and recording, before a session drives them."""

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import attrs

from llmb.drive.notify import read_notify_command
from llmb.drive.secrets import require_secrets
from llmb.drive.session import Session, build_session, ignore_activity
from llmb.drive.session_run import session_run
from llmb.drive.shared_tasks.task_jobs import tasks_without_secrets
from llmb.drive.target_group import Groups, TargetGroup, group_key, group_targets, with_facts
from llmb.hosts.host_connections import HostConnections
from llmb.hosts.work_directory import check_work_directory
from llmb.paths import runs_folder
from llmb.plan_runs import RunPlan, plan
from llmb.plugins.find_peak_flops import find_peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.records.create_records import SweepRecorder, check_home_folder
from llmb.records.provenance import provenance_of_run
from llmb.records.record import RunRecord
from llmb.spec.run_ids import draw_run_ids
from llmb.spec.spec_of_run import build_run_toml
from llmb.values.errors import RecipeError, SpecError, TargetError, UnknownOutcomeError, UnreachableError
from llmb.values.texts.error_text import counted
from llmb.values.types.check_arguments import check_arguments
from llmb.values.workload import Workload

T = TypeVar("T")

RETRIED_S = 30.0
"""How long a check of the target is repeated after the first loss of the connection.

Nothing is recorded yet, so the user can run the command again.
"""


@check_arguments
def start(
    workload: Workload,
    *,
    report_activity: Callable[[str], object] | None = None,
    registry: PluginRegistry | None = None,
) -> Session:
    """Check and record every run of a workload, and return a session that drives them.

    ``report_activity``, if any, is called with what llmb is about to do, such as ``connecting to eos``. ``registry``
    may have loaded plugins already. The function connects to the target: call it in a thread beside an event loop.

    Raise SpecError with all errors, or TargetError, before anything is recorded. Raise RecordError if recording fails.
    """
    report_activity = report_activity or ignore_activity
    registry = registry or PluginRegistry()
    workload = draw_run_ids(workload)
    report_activity(f"planning {counted(len(workload.runs), 'run')}")
    plans: Sequence[RunPlan] = plan(workload.first_repeats, registry=registry)
    require_secrets((each.script, "run") for each in plans)
    check_home_folder()
    read_notify_command()  # an invalid file is an error now, and not when the first run ends
    with HostConnections().closed_on_error() as hosts:
        groups = group_targets(
            [attrs.evolve(each.target, uses_images=each.uses_images) for each in plans], registry, hosts
        )
        notes = _check_targets(groups.values(), report_activity)
        report_activity(f"planning {counted(len(workload.runs), 'run')}")
        plans = _plan_all(workload, plans, groups, registry)
        for key, group in groups.items():
            report_activity(f"checking what exists on {group.name}")
            tasks = {task.key: task for each in plans if group_key(each.target) == key for task in each.tasks}
            missing = _retry_cuts(partial(tasks_without_secrets, tasks.values(), group), group.name, report_activity)
            require_secrets((task.script, task.task.kind) for task in missing)
        notes += dict.fromkeys((*workload.notes, *(note for each in plans for note in each.script.notes)))
        report_activity(f"recording {counted(len(plans), 'run')}")
        records = _new_records(plans, registry)
        runs = [  # errors here record nothing
            session_run(each, record, registry, peak_flops=_peak_of_new_run(each, registry))
            for each, record in zip(plans, records, strict=True)
        ]
        recorder = SweepRecorder({run.record: run.plan.script.text for run in runs})
        return build_session(records, runs, groups, hosts, registry, notes, recorder=recorder)


def _check_targets(groups: Collection[TargetGroup], report_activity: Callable[[str], object]) -> list[str]:
    """Probe the targets, and check their work directories. Return warnings for the user. Raise TargetError."""
    notes: list[str] = []
    for group in groups:
        report_activity(group.describe_probe())
        notes += _retry_cuts(group.probe, group.name, report_activity)
    for group in groups:
        check = partial(check_work_directory, group.workdir, group.host, group.name, shared=group.shared)
        _retry_cuts(check, group.name, report_activity)
    return notes


def _retry_cuts(check: Callable[[], T], target: str, report_activity: Callable[[str], object]) -> T:
    """Return the result of a check, which changes nothing on the target. Repeat it if the connection is lost meanwhile.

    Raise TargetError if the host was never reached, or the connection stays lost.
    """
    end_s, wait_s = math.inf, 1
    while True:
        try:
            return check()
        except (UnreachableError, UnknownOutcomeError):  # a server that stops responding is noticed after a while
            end_s = min(end_s, time.monotonic() + RETRIED_S)
            if time.monotonic() + wait_s > end_s:
                raise
            report_activity(f"connecting to {target} again, because the connection was lost")
            time.sleep(wait_s)
            wait_s += 1


def _plan_all(
    workload: Workload, known: Iterable[RunPlan], groups: Groups, registry: PluginRegistry
) -> Sequence[RunPlan]:
    """Plan the repeats, and plan runs again if a probe found facts: they may rule out a run or change its script."""
    specs = {spec.run.id: with_facts(spec, groups) for spec in workload.runs}
    plans = {each.run.id: each for each in known if each.target.facts == specs[each.run.id].target.facts}
    missing = tuple(spec for run_id, spec in specs.items() if run_id not in plans)
    plans |= {each.run.id: each for each in plan(attrs.evolve(workload, runs=missing), registry=registry)}
    return [plans[run_id] for run_id in specs]


def _new_records(plans: Sequence[RunPlan], registry: PluginRegistry) -> list[RunRecord]:
    """Return the records of the runs, which are not created yet."""
    first_repeats, first_runs = _first_repeat_ids(plans), _first_run_ids(plans)
    return [
        RunRecord(
            runs_folder() / each.run.id,
            build_run_toml(each.spec, provenance_of_run(each, first_repeat, first_run, registry)),
            each.spec.recipe_copy.files if each.spec.recipe_copy else {},
        )
        for each, first_repeat, first_run in zip(plans, first_repeats, first_runs, strict=True)
    ]


def _first_repeat_ids(plans: Sequence[RunPlan]) -> list[str]:
    """Return for each run the id of the first of its repeats, which precedes the others."""
    ids: list[str] = []
    for each in plans:
        ids.append(each.run.id if each.run.repeat == 1 else ids[-1])
    return ids


def _first_run_ids(plans: Sequence[RunPlan]) -> list[str]:
    """Return for each run the id of the sweep's first run on the same target."""
    first: dict[tuple[str, ...], str] = {}
    return [first.setdefault(group_key(each.target), each.run.id) for each in plans]


def _peak_of_new_run(each: RunPlan, registry: PluginRegistry) -> float | None:
    """Return the peak of one GPU. Raise PluginError if a plugin fails to return it, because the metrics need it."""
    with suppress(SpecError, RecipeError, TargetError):  # the hook raises them by contract, perhaps only for now
        return find_peak_flops(each.run, each.target, registry)
    return None
