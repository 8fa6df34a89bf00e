"""The contract that every extension passes."""

from __future__ import annotations

from llmb.testing import ExtensionContract


class TestReport(ExtensionContract):
    extension = "report"
