"""The keys of [target] for ``scheduler = "hosts"``."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from llmb import Fault, PositiveInt, SpecError, shown

LOST_AFTER_S = PositiveInt(60)
GRACE_S = PositiveInt(10)


def _some(_instance: Any, _attribute: Any, hosts: tuple[str, ...]) -> None:
    if not hosts or len(set(hosts)) < len(hosts):
        raise SpecError(Fault(message=f"is {shown(hosts)}", expected="the name of at least one host, each once"))


@attrs.frozen(kw_only=True)
class HostsOptions:
    """See README.md."""

    hosts: tuple[str, ...] = attrs.field(validator=_some)
    runtime: Literal["none"] | None = None
    master_addr: str | None = None
    lost_after_s: PositiveInt = LOST_AFTER_S
    grace_s: PositiveInt = GRACE_S
