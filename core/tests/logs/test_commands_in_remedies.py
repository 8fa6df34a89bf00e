"""Commands of remedies with the host and the port of the process that a rank could not reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import diagnose
from llmb.logs.failures.commands_in_remedies import fill_commands

SOCKET = "DistNetworkError: The client socket has failed to connect to any network address of ({}, 29500)."
GRPC = "XlaRuntimeError: UNAVAILABLE: failed to connect to all addresses; last error: UNKNOWN: {}: Failed to connect"
RESOLVED = "NameResolutionError(\"Failed to resolve '{}' ([Errno -3] Temporary failure in name resolution)\")"


@pytest.mark.parametrize(
    ("line", "peer", "commands"),
    [
        (SOCKET.format("node012"), "node012, 29500", ("`getent hosts node012`", "`nc -vz node012 29500`")),
        (SOCKET.format("$(reboot)"), "$(reboot", ("`getent hosts HOST`", "`nc -vz HOST PORT`")),
        (SOCKET.format("-f"), "-f, 29500", ("`getent hosts HOST`", "`nc -vz HOST PORT`")),
        (GRPC.format("ipv4:10.0.0.9:1234"), "10.0.0.9:1234", ("`nc -vz 10.0.0.9 1234`",)),
        (GRPC.format("ipv6:%5B::1%5D:1234"), "%5B::1%5D:1234", ("`nc -vz HOST PORT`",)),
        ("The client socket has timed out after 60s while trying to connect to (node7, 29500).", "node7, 29500", ()),
        (RESOLVED.format("huggingface.co"), "huggingface.co", ("`getent hosts huggingface.co`",)),
    ],
)  # fmt: skip
def test_cause_and_remedy_name_the_peer(tmp_path: Path, line: str, peer: str, commands: tuple[str, ...]) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"step 1\n{line}\n")
    found = diagnose([log])
    assert found is not None
    remedy = fill_commands(found, {}).remedy

    assert found.cause.endswith(f" ({peer})")
    assert [command for command in commands if command not in remedy] == []


def test_a_name_that_is_unknown_stays_in_capitals(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("socket.gaierror: [Errno -2] Name or service not known\n")
    found = diagnose([log])

    assert found is not None
    assert found.cause == "a host name cannot be resolved"
    assert "`getent hosts HOST`" in fill_commands(found, {}).remedy
