"""Messages in logs by which a scheduler ends all processes of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, cast

from llmb.values.causes import CAUSES, Cause
from llmb.values.failure import Signature
from llmb.values.steps import Notice, Step

LONGEST_MESSAGE: Final = 1000
"""Characters at the end of a message that are searched. Longer texts may be cut by a block of the log."""


def signatures_of_endings(found: Iterable[Step | Notice]) -> Iterator[Signature]:
    """Yield the messages among what a scheduler's parser found, as signatures.

    The signatures are secondary, because a process may have failed before and the others waited until the scheduler
    ended them.
    """
    for notice in found:
        if isinstance(notice, Notice) and notice.kind in CAUSES and notice.text:
            entry = CAUSES[cast("Cause", notice.kind)]
            yield Signature(
                needle=notice.text[-LONGEST_MESSAGE:],
                cause=entry.text,
                remedy=entry.remedy,
                primary=False,
                origin=entry.origin or "",
            )
