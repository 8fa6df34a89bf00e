"""The contract that every framework passes."""

from __future__ import annotations

from llmb.testing import FrameworkContract


class TestMegatronBridge(FrameworkContract):
    framework = "megatron_bridge"
