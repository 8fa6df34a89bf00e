"""The scheduler that distributes the tests among the processes of pytest-xdist."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from xdist.scheduler import LoadGroupScheduling

CHUNKS_PER_PROCESS = 100
"""About how many times the remaining tests of a process are divided. Its last tests come one by one."""


class ChunkScheduler(LoadGroupScheduling):
    """``--dist loadgroup``, with many tests in one message as long as many tests remain.

    For each test, the scheduler of pytest-xdist sends a message, searches the list of all tests, and counts all tests
    that the process has run. For 9,000 tests, this takes several seconds of CPU time.
    """

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget a group of tests that a process has completed. Send more tests if few remain."""
        test = self.registered_collections[node][item_index]
        groups, name = self.assigned_work[node], self._split_scope(test)
        groups[name][test] = True
        if all(groups[name].values()):
            del groups[name]
        self._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        tests = []
        for _ in range(1 + len(self.workqueue) // (CHUNKS_PER_PROCESS * len(self.nodes))):
            name, group = self.workqueue.popitem(last=False)
            self.assigned_work[node][name] = group
            tests += [self._indexes[test] for test, is_complete in group.items() if not is_complete]
            if len(group) > 1 or not self.workqueue:  # a group takes long
                break
        node.send_runtest_some(tests)

    @cached_property
    def _indexes(self) -> dict[str, int]:
        """The position of each test. All processes have collected the same tests in the same order."""
        assert self.collection
        return {test: index for index, test in enumerate(self.collection)}
