"""Removal of the containers of killed jobs."""

import shlex
from collections.abc import Sequence
from contextlib import suppress

from llmb import Host, JobHandle, TargetError
from llmb_local.bash_files import bash_file

TIMEOUT_S = 120.0


def remove_containers(handles: Sequence[JobHandle], host: Host) -> None:
    """Remove the containers of jobs that have ended.

    If the engine cannot remove one now, or does not respond, the next job that takes the same slot or GPU removes it
    (gpu_queue.sh).
    """
    if handles:
        calls = (f"remove_container_of {shlex.quote(handle.directory)}" for handle in handles)
        with suppress(TargetError):
            host.run("\n".join([bash_file("runtimes/container_cleanup.sh"), *calls]), timeout_s=TIMEOUT_S)
