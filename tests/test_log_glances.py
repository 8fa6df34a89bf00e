"""What the parsers of this repository see at a glance is what they read when they look at every line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def thorough(kind: type[LineParser]) -> LineParser:
    """The parser, made to read every line."""
    return type("Thorough", (kind,), {"glance": LineParser.glance})()


def found_in(data: bytes, parser: LineParser) -> list[str]:
    blocks = [data[place : place + 300_000] for place in range(0, len(data), 300_000)]
    found: list[Step | Notice] = [item for block in blocks for item in parser.feed(block)]
    return [repr(item) for item in [*found, *parser.close()]]


@pytest.mark.parametrize("label", ["", "%d: "])
@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}/{log.stem}")
def test_a_glance_sees_what_a_whole_look_sees(log: Path, label: str) -> None:
    for kind in PARSERS.values():
        assert found_in(several(log, label), kind()) == found_in(several(log, label), thorough(kind))


USUAL = {
    MaxTextLog: "completed step: {0}, seconds: {0}.500, TFLOP/s/device: 134.924, loss: 10.{0}",
    NeMoLog: "Epoch 0: :  10%|█ | {0}/9 [00:49<07:25, v_num=, reduced_train_loss=1.{0}, train_step_timing in s={0}.50]",
    MegatronLog: " iteration  {0}/  9 | consumed samples:   16 | elapsed time per iteration (ms): {0}500.0 | "
    "lm loss: 1.{0} | number of nan iterations:   0 |\nStep Time : {0}.50s GPU utilization: 7{0}.5MODEL_TFLOP/s/GPU",
}


@pytest.mark.parametrize("kind", USUAL)
@given(
    numbers=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    places=st.lists(st.tuples(st.integers(0), st.integers(0), st.integers(0)), max_size=4),
)
def test_nor_does_it_see_more_in_lines_of_which_parts_are_lost_or_stand_elsewhere(
    kind: type[LineParser], numbers: list[int], places: list[tuple[int, int, int]]
) -> None:
    data = "".join(USUAL[kind].format(number) + "\n" for number in numbers).encode()
    for place, length, target in places:
        begin, end = place % len(data), place % len(data) + length % 40
        part, rest = data[begin:end], data[:begin] + data[end:]
        data = rest[: target % (len(rest) + 1)] + part + rest[target % (len(rest) + 1) :]

    assert found_in(data, kind()) == found_in(data, thorough(kind))
