"""Check of the commands that llmb's scripts use on a host."""

import shlex
from collections.abc import Iterator

from llmb.hookspecs import DoctorCheck
from llmb.values.errors import TargetError
from llmb.values.host import Host

BASH = (4, 4)
"""The oldest bash that runs llmb's scripts."""

PACKAGES = {"flock": "util-linux", "grep": "grep", "sed": "sed", "setsid": "util-linux"}
"""Commands that llmb's scripts use on every host, each with the package that contains it."""

TRANSFER_PACKAGES = {"gzip": "gzip", "tar": "tar", "xargs": "findutils"}
"""Commands that transfer files over SSH."""


def check_commands(host: Host, name: str, *, remote: bool) -> Iterator[DoctorCheck]:
    """Yield a check if commands are missing on the host. Raise TargetError, also if its bash is too old."""
    packages = PACKAGES | (TRANSFER_PACKAGES if remote else {})
    result = host.run(
        'echo "${BASH_VERSINFO[0]} ${BASH_VERSINFO[1]}"\n'
        f'for name in {shlex.join(packages)}; do command -v "$name" >/dev/null || echo "$name"; done'
    )
    if result.exit_code or not result.stdout:
        raise TargetError(f"cannot run commands on {name} (exit code {result.exit_code}) {result.stderr}".strip())
    version, *missing = result.stdout.splitlines()
    major, minor = map(int, version.split())
    if (major, minor) < BASH:
        raise TargetError(f"bash {major}.{minor} on {name} is too old; install bash {BASH[0]}.{BASH[1]} or later there")
    if missing:
        detail = f"not installed: {', '.join(missing)}"
        remedy = f"install {', '.join(dict.fromkeys(packages[each] for each in missing))} on {name}"
        yield DoctorCheck(name="commands", ok=False, detail=detail, remedy=remedy)
