"""The keys of [target] for ``scheduler = "hosts"``."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from llmb import Fault, HostAddress, PositiveInt, SpecError, format_value

LOST_AFTER_S = 60
GRACE_S = 10


def _check_hosts(_instance: Any, _attribute: Any, hosts: tuple[str, ...]) -> None:
    """Reject an empty list and duplicates."""
    if not hosts or len(set(hosts)) < len(hosts):
        raise SpecError(
            Fault(message=f"invalid list {format_value(hosts)}", expected="at least one host name, without duplicates")
        )


@attrs.frozen(kw_only=True)
class HostsOptions:
    """Options of jobs on these hosts. README.md describes the keys."""

    hosts: tuple[HostAddress, ...] = attrs.field(validator=_check_hosts)
    """Hosts of the jobs; the first one starts the processes on the others. Example: ``["node1", "node2"]``"""
    runtime: Literal["none"] | None = None
    """What runs the processes: only `"none"`, which starts them directly. Default: none. Example: ``"none"``"""
    master_addr: HostAddress | None = None
    """Address of the first host in the training network. Default: its name. Example: ``"10.0.0.1"``"""
    lost_after_s: PositiveInt = LOST_AFTER_S
    """Seconds without an answer of a host after which the job has failed. Example: ``120``"""
    grace_s: PositiveInt = GRACE_S
    """Seconds between SIGTERM and SIGKILL. Example: ``30``"""
