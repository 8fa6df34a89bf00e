"""What the parsers of this repository see at a glance is what they read when they look at every line."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb import LineParser, Notice, Step
from llmb_maxtext.log import MaxTextLog
from llmb_megatron_bridge.log import MegatronLog
from llmb_nemo_launcher.log import NeMoLog

SHARED = Path(__file__).parents[2] / "shared" / "logs"
PARSERS: dict[str, type[LineParser]] = {"maxtext": MaxTextLog, "nemo": NeMoLog, "megatron": MegatronLog}
GOLDEN = sorted(Path(__file__).parents[1].glob("plugins/*/tests/golden/*.log"))
LOGS = GOLDEN + [log for folder in PARSERS for log in sorted((SHARED / folder).glob("*.log"))]


def several(log: Path, label: str) -> bytes:
    """The log three times, as runs one after the other or as ranks by turns."""
    lines = log.read_bytes().splitlines(keepends=True)
    if not label:
        return b"".join(lines) * 3
    return b"".join(label.encode() % rank + line for line in lines for rank in range(3))


def found_in(data: bytes, parser: LineParser) -> list[str]:
    blocks = [data[place : place + 300_000] for place in range(0, len(data), 300_000)]
    found: list[Step | Notice] = [item for block in blocks for item in parser.feed(block)]
    return [repr(item) for item in [*found, *parser.close()]]


@pytest.mark.parametrize("label", ["", "%d: "])
@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}/{log.stem}")
def test_a_glance_sees_what_a_whole_look_sees(log: Path, label: str) -> None:
    for kind in PARSERS.values():
        thorough = type("Thorough", (kind,), {"glance": LineParser.glance})

        assert found_in(several(log, label), kind()) == found_in(several(log, label), thorough())
