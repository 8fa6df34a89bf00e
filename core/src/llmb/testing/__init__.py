"""Contract tests for authors of plugins, with pytest: ``pip install llmb[testing]``.

A test file of a framework needs three lines::

    from llmb.testing import FrameworkContract

    class TestTorchTitan(FrameworkContract):
        framework = "torchtitan"

docs/testing.md lists the tests.
"""

from llmb.hosts.local_host import LocalHost
from llmb.testing.extension import ExtensionContract
from llmb.testing.framework import FrameworkContract
from llmb.testing.pack import RecipePackContract
from llmb.testing.sample_runs import plan_tables
from llmb.testing.scheduler import SchedulerContract

__all__ = [
    "ExtensionContract",
    "FrameworkContract",
    "LocalHost",
    "RecipePackContract",
    "SchedulerContract",
    "plan_tables",
]
