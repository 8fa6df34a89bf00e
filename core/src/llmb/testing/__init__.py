"""Contract tests for authors of plugins and recipe packs, with pytest: ``pip install llmb[testing]``.

A test file of a framework needs three lines::

    from llmb.testing import FrameworkContract

    class TestTorchTitan(FrameworkContract):
        framework = "torchtitan"

docs/testing.md lists the tests.
"""

from llmb.testing.framework import FrameworkContract

__all__ = ["FrameworkContract"]
