"""What ``llmb doctor`` tells of the hosts beside the first, which is looked at as every target's own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from llmb import DoctorCheck, Host, Target, TargetError
from llmb_hosts.options import HostsOptions


def host_checks(target: Target[HostsOptions], host: Host) -> Iterator[DoctorCheck]:
    """Whether each can be reached, and sees the same work directory, once that is there."""
    look = f"stat -c %i -- {shlex.quote(target.workdir)} 2>/dev/null; true"
    there = host.run(look).stdout
    for name in target.options.hosts[1:]:
        remedy = "mend that, or leave it out of target.hosts"
        try:
            same = host.peer(name).run(look).stdout == there
        except TargetError as error:
            yield DoctorCheck(name=name, ok=False, detail=str(error), remedy=remedy)
            continue
        detail = "answers" if same else f"does not see the work directory of {target.host}"
        yield DoctorCheck(name=name, ok=same, detail=detail, remedy="" if same else remedy)
