"""Planted errors in schedulers: each fails its test of `SchedulerContract`, and no other test."""

from __future__ import annotations

from typing import Any

import pytest

from llmb.testing import SchedulerContract

PLUGIN = """
import os, shlex, subprocess, time
import attrs
from llmb import *

@attrs.frozen(kw_only=True)
class Options:
    queue: str = "all"

class Plugin(SchedulerHooks[Options]):
    options = Options
    single_node = True

    @hookimpl
    def build_job(self, job, target):
        if isinstance(job.environment.base, Image):
            raise SpecError(Fault(message="images are not supported", key="workload.image"))
        lines = [shlex.join(phase.words) for phase in job.phases]
        logs = {phase.name: (f"{job.directory}/{phase.name}.{{attempt}}.log",) for phase in job.phases}
        return Script(id=job.id, directory=job.directory, text="\\n".join(lines), logs=logs)

    @hookimpl
    def submit(self, scripts, host):
        return submit_detached(scripts, host)

    @hookimpl
    def poll(self, tickets, host):
        return poll_detached(tickets, host)

    @hookimpl
    def cancel(self, tickets, host):
        return cancel_detached(tickets, host)
"""

PLANTED = [
    ("implements_its_hooks", "def build_job(self, job, target)", "def build_job(self, task)", "requires task"),
    (
        "building_is_pure",
        "        return Script(",
        '        subprocess.run(["true"])\n        return Script(',
        "Popen 'true'",
    ),
    ("building_is_pure", "lines = [", "lines = [f'# {int(time.time()) // 3600}'] + [", "the script differs"),
    ("scripts_are_valid_bash", "shlex.join(phase.words)", '" ".join(phase.words)', "quote values with shlex.quote"),
    ("is_framework_neutral", "lines = [", "lines = ['torchrun x'] + [", "the script contains torchrun"),
    ("phases_have_separate_logs", "{phase.name}.{{attempt}}", "job.{{attempt}}", "several logs are named"),
    ("phases_have_separate_logs", ".{{attempt}}", "", "is the same for each attempt of the job"),
    ("environments_are_used_or_rejected", "isinstance(job.environment.base, Image)", "False", "outside the container"),
    ("secrets_stay_out_of_scripts", "lines = [", "lines = ['export HF_TOKEN=abc'] + [", "the script sets HF_TOKEN"),
]


def failures(site: Any, code: str) -> dict[str, str]:
    """Install a scheduler and run its contract tests. Return the messages of those that fail."""
    site.install(
        "llmb-odd", files={"llmb_odd/__init__.py": code}, entry_points={"llmb.schedulers": {"odd": "llmb_odd:Plugin"}}
    )

    class TestOdd(SchedulerContract):
        scheduler = "odd"

    found = {}
    for name in dir(TestOdd):
        if name.startswith("test_") and name != "test_import_is_light":
            try:
                getattr(TestOdd(), name)()
            except pytest.fail.Exception as failure:
                found[name.removeprefix("test_")] = str(failure)
            except pytest.skip.Exception:
                continue
    return found


def test_a_correct_scheduler_passes(active_site: Any) -> None:
    assert failures(active_site, PLUGIN) == {}


@pytest.mark.parametrize(("test", "old", "new", "message"), PLANTED, ids=[f"{row[0]}-{row[3]}" for row in PLANTED])
def test_a_planted_error_fails_its_test_and_no_other(
    active_site: Any, test: str, old: str, new: str, message: str
) -> None:
    assert old in PLUGIN
    found = failures(active_site, PLUGIN.replace(old, new))
    assert set(found) == {test}, found
    assert message in found[test]
