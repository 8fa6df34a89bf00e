from __future__ import annotations

from llmb.testing import FrameworkContract


class TestTorchTitan(FrameworkContract):
    framework = "torchtitan"
