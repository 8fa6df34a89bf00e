"""The reason of a failed task: the last message in its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.drive.shared_tasks.task_failure import LONGEST_MESSAGE, find_task_failure
from llmb.hosts.local_host import LocalHost
from llmb.plan_shared_tasks import TaskPlan
from llmb.state_machine.units import RunsOn
from llmb.values.frozen import FrozenMap
from llmb.values.job import Script, Task
from llmb.values.job_status import JobStatus

HASHES = """\
error: Failed to download `six==1.17.0`
  cause: Hash mismatch for `six==1.17.0`

         Expected:
           sha256:00

         Computed:
           sha256:47
"""
UNSATISFIABLE = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of six==99.0 and you require six==99.0, we
         can conclude that your requirements are unsatisfiable.
"""
OLDER_UV = """\
  \u00d7 No solution found when resolving dependencies:
  ╰─▶ Because there is no version of six==99.0 and you require six==99.0, we
      can conclude that your requirements are unsatisfiable.
"""
IMPOSSIBLE = (
    "Because there is no version of six==99.0 and you require six==99.0, we can conclude that your requirements are "
    "unsatisfiable."
)
FRAME = f"""\
           File "/tmp/build/setup.py", line 2, in <module>
             {"a line of code " * 10}
"""
FAILED_BUILD = f"""\
error: Failed to build `flash-attn==2.6.3`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)

         [stderr]
         Traceback (most recent call last):
{FRAME * 5}\
         ModuleNotFoundError: No module named 'torch'

hint: This error likely indicates that `flash-attn@2.6.3` depends on `torch`, but doesn't declare it as a build \
dependency. Otherwise, either add it to your `pyproject.toml` under:

[tool.uv.extra-build-dependencies]
flash-attn = ["torch"]

or `uv pip install torch` into the environment and re-run with `--no-build-isolation`.
"""


def reason(folder: Path, log: str, *, on: RunsOn = "host", reported: str = "") -> str:
    """Return the reason of a task with this log, without the path of the log."""
    (folder / "log").write_text(f"creating {folder}/venv with python\n{log}")
    script = Script(id="t", directory=str(folder), text="", logs=FrozenMap({"venv": (f"{folder}/log",)}))
    plan = TaskPlan(task=Task(key="t", kind="venv", work=":", check=""), script=script, on=on)
    status = JobStatus(state="ended", cause="failed", exit_code=1, reason=reported)
    failure, _ = find_task_failure(plan, status, LocalHost())
    return failure.reason.removesuffix(f" (log: {folder}/log)")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (HASHES, "Hash mismatch for `six==1.17.0` Expected: sha256:00 Computed: sha256:47"),
        (UNSATISFIABLE, IMPOSSIBLE),
        (OLDER_UV, IMPOSSIBLE),
    ],
)
def test_a_message_that_uv_wraps_is_complete(tmp_path: Path, log: str, expected: str) -> None:
    assert reason(tmp_path, log) == expected


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("error: Failed to fetch\n  cause: odd certificate\nhint: look\n", "odd certificate"),
        ("fatal: no such remote\n  see git help\n", "see git help"),
        ("error: 404\nno Python on n1\n", "no Python on n1"),
    ],
)
def test_another_message_is_the_last_line(tmp_path: Path, log: str, expected: str) -> None:
    assert reason(tmp_path, log) == expected


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        (
            "error sending request for url (https://pypi.org/simple/torch/)\n  cause: dns error\n  cause: not known",
            "no route to a server: https://pypi.org/simple/torch/: not known",
        ),
        (
            "HTTP status client error (403 Forbidden) for url (https://pypi.org/simple/torch/)",
            "HTTP status client error (403 Forbidden) for url (https://pypi.org/simple/torch/)",
        ),
    ],
)
def test_a_failed_download_names_its_url_once(tmp_path: Path, causes: str, expected: str) -> None:
    fetch = "error: Request failed after 3 retries\n  cause: Failed to fetch: https://pypi.org/simple/torch/\n"
    assert reason(tmp_path, f"{fetch}  cause: {causes}\n") == expected


def test_the_url_of_an_earlier_download_does_not_belong_to_another_error(tmp_path: Path) -> None:
    log = "warning: Failed to fetch: https://pypi.org/simple/torch/; retrying\nerror: the disk is odd\n"
    assert reason(tmp_path, log) == "the disk is odd"


def test_the_last_line_is_not_repeated_if_the_scheduler_reports_it(tmp_path: Path) -> None:
    assert reason(tmp_path, "error: odd\n", on="scheduler", reported="error: odd") == "odd"


def test_a_failed_build_ends_with_its_cause(tmp_path: Path) -> None:
    assert reason(tmp_path, FAILED_BUILD) == (
        "Call to `setuptools.build_meta.build_wheel` failed (exit status: 1) ... "
        "ModuleNotFoundError: No module named 'torch'"
    )


def test_the_lines_of_a_long_message_are_shortened(tmp_path: Path) -> None:
    found = reason(tmp_path, f"error: {'begin ' * 200}\n  {'end ' * 200}\n")
    assert found.startswith("begin begin ")
    assert " begin ... " in found
    assert found.endswith(" end end")
    assert len(found) <= LONGEST_MESSAGE + len(" ... ")
