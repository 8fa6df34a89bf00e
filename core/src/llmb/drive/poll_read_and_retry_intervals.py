"""The pauses between two polls of a target, and between two reads of the logs there.

A target that does not respond is tried again after the same pauses. `SchedulerHooks.poll_interval_s` has the default.
"""

import attrs

GROWTH = 1.5
"""Factor by which a pause grows while nothing changes."""

LOCAL_READ_INTERVAL_S = 0.25
"""How often logs that grow are read on this machine."""

REMOTE_READ_INTERVAL_S = 2.0
"""How often logs that grow are read on another machine."""


@attrs.define(eq=False)
class PollAndReadIntervals:
    """The times of a loop's next poll and next read. Each pause grows while nothing changes."""

    poll_interval_s: tuple[float, float]
    read_interval_s: float = LOCAL_READ_INTERVAL_S
    poll_due_s: float = 0.0
    read_due_s: float = 0.0
    _poll_pause_s: float = attrs.field(default=attrs.Factory(lambda self: self.poll_interval_s[0], takes_self=True))
    _read_pause_s: float = attrs.field(default=attrs.Factory(lambda self: self.read_interval_s, takes_self=True))

    @property
    def due_s(self) -> float:
        """The time of the next tick."""
        return min(self.poll_due_s, self.read_due_s)

    def plan_poll(self, now_s: float, *, changed: bool) -> None:
        """Set when the next poll is due, after a poll or after a read that found the last step of a run."""
        shortest, longest = self.poll_interval_s
        self._poll_pause_s = shortest if changed else min(self._poll_pause_s * GROWTH, longest)
        self.poll_due_s = now_s + self._poll_pause_s

    def plan_read(self, now_s: float, *, running: bool, logs_grew: bool) -> None:
        """Set when the next read is due. Without a running job, there is nothing to read between two polls."""
        longest = max(self.poll_interval_s[1], self.read_interval_s)
        self._read_pause_s = self.read_interval_s if logs_grew else min(self._read_pause_s * GROWTH, longest)
        self.read_due_s = now_s + self._read_pause_s if running else self.poll_due_s
