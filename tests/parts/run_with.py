"""Starts a Slurm cluster or a Docker engine, runs a command that can use them, and stops them.

python3 tests/parts/run_with.py [slurm] [docker] [-- COMMAND...]        as root, after .ci/install-parts

``slurm`` is a Slurm cluster of two nodes, with a login node that SSH reaches as ``cluster``. ``docker`` is a Docker
engine. The command (default: a shell) has an empty HOME, which is deleted at the end. Its exit code is returned.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts.docker import Docker  # the path is set just above
from parts.docker import missing as missing_for_docker  # the same
from parts.slurm import Cluster  # the same
from parts.slurm import missing as missing_for_slurm  # the same
from parts.sshd import Sshd  # the same

MISSING = {"slurm": missing_for_slurm, "docker": missing_for_docker}
OF_NETWORK = re.compile(r"^(UV|PIP)_|CERT|PROXY|proxy")  # a login node has these too
NOT_OURS = ("XDG_", "LLMB_", "SLURM_", "SBATCH_", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "DOCKER_")


def main() -> int:
    """Run the command, and return its exit code."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parts, command = words[:at], words[at + 1 :] or [os.environ.get("SHELL", "bash")]
    if unknown := set(parts) - set(MISSING):
        raise SystemExit(f"{', '.join(sorted(unknown))}: not a part; expected {' or '.join(MISSING)}")
    if lacking := [why for name in parts if (why := MISSING[name]())]:
        raise SystemExit("; ".join(lacking))
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the parts are stopped
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits an ignored SIGINT
    with ExitStack() as stack:
        env = start(parts, stack)
        return subprocess.run(command, env=env, check=False).returncode


def start(parts: list[str], stack: ExitStack) -> dict[str, str]:
    """Start the parts, and return the environment of a new user who can use them."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    env["HOME"] = stack.enter_context(tempfile.TemporaryDirectory(prefix="llmb-home-", ignore_cleanup_errors=True))
    if "slurm" in parts:
        cluster = stack.enter_context(Cluster(nodes=2))
        login = {name: value for name, value in env.items() if OF_NETWORK.search(name)} | cluster.env
        env |= stack.enter_context(Sshd(env=login)).env
    if "docker" in parts:
        env |= stack.enter_context(Docker()).env
    return env


if __name__ == "__main__":
    sys.exit(main())
