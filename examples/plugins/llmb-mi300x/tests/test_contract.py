from __future__ import annotations

from llmb.testing import PackContract


class TestMI300X(PackContract):
    pack = "mi300x"
