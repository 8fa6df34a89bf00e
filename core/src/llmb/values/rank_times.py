"""Step times that one process of a run printed."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class RankTimes:
    """Step times in seconds that one process printed, by the numbers of the steps."""

    rank: int | None
    host: str | None
    times_s: Mapping[int, float]
