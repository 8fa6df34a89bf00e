"""The lowest versions of libraries that the distributions accept, with which users may have to live."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from parts.deadline import DEADLINE_S
from parts.wheels import ROOT, UV

pytestmark = [pytest.mark.real, pytest.mark.slow]

LOWEST = ("--resolution", "lowest-direct", "--group", "dev", "--no-progress")
TESTS = (  # of the code that calls libraries most
    "core/tests/cli",
    "core/tests/hosts",
    "core/tests/parsing",
    "core/tests/spec",
    "plugins/report/tests",
    "tests/test_completion.py",
    "tests/test_option_pairs.py",
)
OPTIONS = ("-q", "-n", "0", "-W", "ignore::DeprecationWarning")  # libraries of that time call deprecated functions


def test_the_lowest_versions_of_all_libraries_work(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    subprocess.run(["cp", "--parents", "--no-dereference", *files, str(tmp_path)], cwd=ROOT, check=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [UV, "run", *LOWEST, "pytest", *OPTIONS, *TESTS],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
