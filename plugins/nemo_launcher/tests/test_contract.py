"""The contract that every framework passes."""

from __future__ import annotations

from llmb.testing import FrameworkContract


class TestNeMoLauncher(FrameworkContract):
    framework = "nemo_launcher"
