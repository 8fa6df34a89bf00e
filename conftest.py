"""Settings of the whole test run."""

from __future__ import annotations

import functools
import gc
import logging
import os
import signal
import sys
import uuid
from collections.abc import Generator, Iterator
from importlib import metadata
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest
import typer.main

REQUIRE_REAL = "LLMB_REQUIRE_REAL"

# Before pytest imports any other module of the tests: each worker would compile all of them again.
sys.dont_write_bytecode, sys.pycache_prefix = False, str(Path(__file__).parent / ".pytest_cache/bytecode")


def pytest_configure(config: pytest.Config) -> None:
    """Cache the bytecode of the processes that tests start, whatever the environment contains."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(sys.pycache_prefix)
    os.environ["MPLCONFIGDIR"] = str(config.rootpath / ".pytest_cache/matplotlib")  # the index of all fonts
    os.environ["DPKG_ADMINDIR"] = "/nonexistent"  # `podman info` would search all packages for each of its programs
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # inherited from a background job of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    from hypothesis import settings  # pytest rewrites its modules, and caches them only from here on

    # A busy machine may take long for an example. CI tries the same examples each time, all others new ones.
    settings.register_profile("busy", deadline=None, derandomize=bool(os.environ.get(REQUIRE_REAL)))
    settings.load_profile("busy")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Start two processes per core, because most tests wait most of the time. Run chosen files in this process."""
    chosen = config.option.keyword or any(Path(argument.split("::")[0]).is_file() for argument in config.args)
    return 0 if chosen else 2 * (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Do not search the tests for unused cycles, neither while they are collected nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's records and targets from each test."""
    folder = tmp_path_factory.getbasetemp() / "llmb" / uuid.uuid4().hex  # mktemp reads the list of all earlier folders
    folder.mkdir(parents=True)
    monkeypatch.setenv("LLMB_HOME", str(folder / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))


@pytest.fixture(autouse=True, scope="session")
def _resource_tracker() -> None:
    """Start this process of multiprocessing before any test. It would be killed with a test whose variables it has."""
    resource_tracker.ensure_running()


@pytest.fixture(autouse=True, scope="session")
def _one_command_line() -> Iterator[None]:
    """Build the tree of commands once for all tests that run commands in this process. A process builds it once too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True, scope="session")
def _metadata_read_once() -> Iterator[None]:
    """Read the metadata of each distribution in this environment once, and not for each command in this process."""

    def once(name: str) -> property:
        read = getattr(metadata.Distribution, name).fget
        known: dict[str, Any] = {}

        def look_up(distribution: Any) -> Any:
            path = str(getattr(distribution, "_path", ""))
            if not path.startswith(sys.prefix):  # a distribution of a test, which may change
                return read(distribution)
            if path not in known:
                known[path] = read(distribution)
            return known[path]

        return property(look_up)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("entry_points", "metadata"):
            patch.setattr(metadata.PathDistribution, name, once(name), raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def _recipes_read_once() -> Iterator[None]:
    """Read each recipe once for all commands in this process, and again if the text of one of its files changes."""
    from llmb.plugins import recipe_files

    merge, read = recipe_files.with_shared, recipe_files.read_recipe
    known: dict[Any, Any] = {}

    def with_shared(tables: Any, shared: Any, file: str) -> Any:
        key = (id(tables), file, *shared.items())  # known keeps the tables, so that no other ones have their id
        if key not in known:
            known[key] = (tables, merge(tables, shared, file))
        return known[key][1]

    def read_recipe(tables: Any, *, address: str, framework: str, file: str, release: str | None) -> Any:
        key = (id(tables), address, framework, file, release)
        if key not in known:
            known[key] = (tables, read(tables, address=address, framework=framework, file=file, release=release))
        return known[key][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe_files, "with_shared", with_shared)
        patch.setattr(recipe_files, "read_recipe", read_recipe)
        yield


@pytest.fixture(autouse=True)
def _quick_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print no activity such as ``reading my.toml ...``, and no slow hook, if a busy machine makes a command slow."""
    monkeypatch.setattr("llmb.cli.views.plain_view.ACTIVITY_DELAY_S", 3600.0)
    monkeypatch.setattr("llmb.plugins.slow_hooks.SLOW_S", 3600.0)


@pytest.fixture(autouse=True)
def _no_host_commands() -> Iterator[None]:
    """Print no commands of hosts after a test that ran a command with ``--verbose`` in this process."""
    yield
    logger = logging.getLogger("llmb.hosts")
    if logger.handlers:
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip for a missing real part into a failure if real parts are required, except for parts of the kernel."""
    report = yield
    if report.skipped and item.get_closest_marker("real") and os.environ.get(REQUIRE_REAL):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if "the kernel has no" in reason:  # nothing that could be installed
            return report
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} needs a real part that is not here: {reason}"
    return report
