"""Settings of the whole test run."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

REQUIRE_REAL = "LLMB_REQUIRE_REAL"


def pytest_configure(config: pytest.Config) -> None:
    """What tests start need not be compiled each time, whatever the environment says."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(config.rootpath / ".pytest_cache/bytecode")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a shell's background, for all that is started there
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("busy", deadline=None)  # how long an example takes on a busy machine tells nothing
    settings.load_profile("busy")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Most tests wait most of the time; a few that somebody chose run here, without processes that must start first."""
    chosen = config.option.keyword or any(Path(argument.split("::")[0]).is_file() for argument in config.args)
    return 0 if chosen else 2 * (os.cpu_count() or 1)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or touches the user's records and targets."""
    folder = tmp_path_factory.getbasetemp() / "llmb" / uuid.uuid4().hex  # mktemp looks at all that it made before
    folder.mkdir(parents=True)
    monkeypatch.setenv("LLMB_HOME", str(folder / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where real parts are required, a test that needs one may not be skipped."""
    report = yield
    if report.skipped and item.get_closest_marker("real") and os.environ.get(REQUIRE_REAL):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} needs a real part that is not here: {reason}"
    return report
