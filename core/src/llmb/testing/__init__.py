"""Contract tests for authors of plugins, with pytest: ``pip install llmb[testing]``.

A test file of a framework needs three lines::

    from llmb.testing import FrameworkContract

    class TestTorchTitan(FrameworkContract):
        framework = "torchtitan"

docs/testing.md lists the tests.
"""

try:
    import hypothesis  # noqa: F401  # the modules below need it
    import pytest  # noqa: F401  # the same
except ModuleNotFoundError as error:
    message = f'llmb.testing needs {error.name}; install it with `pip install "llmb[testing]"`'
    raise ModuleNotFoundError(message, name=error.name) from error

from llmb.hosts.local_host import LocalHost
from llmb.testing.extension import ExtensionContract
from llmb.testing.framework import FrameworkContract
from llmb.testing.pack import PackContract
from llmb.testing.sample_runs import plan_tables
from llmb.testing.scheduler import SchedulerContract

__all__ = [
    "ExtensionContract",
    "FrameworkContract",
    "LocalHost",
    "PackContract",
    "SchedulerContract",
    "plan_tables",
]
