"""The host of a target."""

from __future__ import annotations

from typing import Any

from llmb.hookspecs import Host
from llmb.hosts.local import LocalHost
from llmb.values.errors import SpecError
from llmb.values.run import Target


def open_host(target: Target[Any]) -> Host:
    """This machine. Raises SpecError for a target on another one, which this version cannot reach."""
    if target.host is not None:
        raise SpecError(f"target.host {target.host!r}: this version of llmb runs jobs on this machine only")
    return LocalHost()
