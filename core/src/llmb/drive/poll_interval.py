"""The pause between two polls of a target."""

from __future__ import annotations

import attrs

READ_INTERVAL_S = 0.25
"""How often logs that grow are read on a target that may be polled this often."""


@attrs.define(eq=False)
class PollInterval:
    """The time of a loop's next tick. The pause grows while nothing changes."""

    poll_interval_s: tuple[float, float]
    due_s: float = 0.0
    pause_s: float = attrs.field(default=attrs.Factory(lambda self: self.poll_interval_s[0], takes_self=True))

    def next_tick(self, now_s: float, *, changed: bool, reading: bool) -> None:
        """Set when the next tick is due."""
        shortest, longest = self.poll_interval_s
        if changed:
            self.pause_s = shortest
        elif reading:
            self.pause_s = max(shortest, READ_INTERVAL_S)
        else:
            self.pause_s = min(self.pause_s * 1.5, longest)
        self.due_s = now_s + self.pause_s
