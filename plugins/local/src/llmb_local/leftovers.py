"""What a job leaves behind that was killed before it could remove its container."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from llmb import Host, JobHandle
from llmb_local.bash import library


def remove_leftovers(tickets: Sequence[JobHandle], host: Host) -> None:
    """Remove the containers of jobs that have ended. One that cannot be removed now is when its place is next taken."""
    if tickets:
        calls = (f"end_container_of {shlex.quote(ticket.directory)}" for ticket in tickets)
        host.run("\n".join([library("containers.sh"), *calls]), timeout_s=120)
