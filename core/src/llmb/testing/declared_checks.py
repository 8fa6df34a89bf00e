"""The framework contract, applied to a framework that a pack declares."""

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from llmb.plugins.find_plugins import PluginEntry
from llmb.plugins.load import load
from llmb.testing.framework import FrameworkContract
from llmb.testing.log_checks import LogContract
from llmb.values.errors import LlmbError

OTHER_TESTS = {
    "test_import_is_light",  # no code
    "test_recipes_are_valid",  # the contract of a pack has these three
    "test_published_points_build_jobs",
    "test_metrics_are_plausible",
}


def can_be_read(framework: PluginEntry) -> bool:
    """Check whether the file of a declared framework has no error."""
    try:
        load(framework)
    except LlmbError:
        return False
    return True


def logs_of(tests: type, framework: str) -> list[Path]:
    """Return the logs in the folder ``logs/FRAMEWORK`` beside the file of the tests."""
    return sorted((Path(inspect.getfile(tests)).parent / "logs" / framework).glob("*.log"))


def framework_failures(framework: PluginEntry, logs: Sequence[Path]) -> Iterator[str]:
    """Yield the messages of the tests of `FrameworkContract` that fail, those of logs only if there are logs."""
    own_logs = list(logs)

    class DeclaredContract(FrameworkContract):
        logs = own_logs

    tests = DeclaredContract()
    tests.framework = framework.name
    for name in dir(tests):
        needs_logs = name in vars(LogContract)
        if name.startswith("test_") and name not in OTHER_TESTS and (own_logs or not needs_logs):
            try:
                getattr(tests, name)()
            except pytest.fail.Exception as failure:
                yield str(failure)
            except pytest.skip.Exception:
                continue
