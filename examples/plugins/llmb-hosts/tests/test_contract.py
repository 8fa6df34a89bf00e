from __future__ import annotations

from llmb import FrozenMap
from llmb.testing import SchedulerContract


class TestHosts(SchedulerContract):
    scheduler = "hosts"
    target = FrozenMap({"hosts": ["node1"]})
