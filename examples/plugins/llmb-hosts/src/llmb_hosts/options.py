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
    runtime: Literal["none"] | None = None
    master_addr: HostAddress | None = None
    lost_after_s: PositiveInt = LOST_AFTER_S
    grace_s: PositiveInt = GRACE_S
