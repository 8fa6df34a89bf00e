"""Removal of the containers of killed jobs."""

import shlex
from collections.abc import Sequence

from llmb import Host, JobHandle
from llmb_local.bash_files import bash_file


def remove_containers(handles: Sequence[JobHandle], host: Host) -> None:
    """Remove the containers of jobs that have ended.

    If the engine cannot remove one now, the next job that takes the same slot or GPU removes it (gpu_queue.sh).
    """
    if handles:
        calls = (f"remove_container_of {shlex.quote(handle.directory)}" for handle in handles)
        host.run("\n".join([bash_file("runtimes/container_cleanup.sh"), *calls]), timeout_s=120)
