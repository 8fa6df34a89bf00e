"""Checks of the hosts other than the first for ``llmb doctor``. Core checks the first host itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from llmb import DoctorCheck, Host, Target, TargetError
from llmb_hosts.options import HostsOptions


def host_checks(target: Target[HostsOptions], host: Host) -> Iterator[DoctorCheck]:
    """Check whether each host can be reached and, once the work directory exists, sees the same directory."""
    print_inode = f"stat -c %i -- {shlex.quote(target.workdir)} 2>/dev/null; true"
    inode = host.run(print_inode).stdout
    for name in target.options.hosts[1:]:
        remedy = "fix this, or remove the host from target.hosts"
        try:
            same = host.peer(name).run(print_inode).stdout == inode
        except TargetError as error:
            yield DoctorCheck(name=name, ok=False, detail=str(error), remedy=remedy)
            continue
        detail = "reachable" if same else f"does not see the work directory of {target.host}"
        yield DoctorCheck(name=name, ok=same, detail=detail, remedy="" if same else remedy)
