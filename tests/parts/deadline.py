"""The time after which a test stops waiting."""

from __future__ import annotations

# A busy machine may need ten times as long as an idle one, so only a test that hangs should meet this.
DEADLINE_S = 600
