"""Logs of other programs have no steps. Coloured logs of a framework have all of them."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import llmb

LINES = {
    "maxtext": b"completed step: 3, seconds: 3.585, TFLOP/s/device: 288.187, loss: 1.977\n",
    "nemo_launcher": b"Training epoch 0, iteration 0/19 | train_step_timing in s: 4.9 | global_step: 0\n",
    "megatron_bridge": b" iteration        1/     100 | elapsed time per iteration (ms): 1617.2 | lm loss: 7.5E+00 |\n",
}
NEEDLES = {
    "maxtext": b"completed step: ",
    "nemo_launcher": b"Epoch 0: [, train_step_timing in s=",
    "megatron_bridge": b"elapsed time per iteration (ms): ",
}
NOTHING = {"empty": b"", "blank": b"\n" * 10_000, "binary": random.Random(1).randbytes(300_000)}


@pytest.mark.parametrize("framework", LINES)
@pytest.mark.parametrize("other", [*NOTHING, *LINES, "needles alone"])
def test_what_is_no_log_of_a_framework_has_no_step(tmp_path: Path, framework: str, other: str) -> None:
    content = {**NOTHING, **{name: line * 100 for name, line in LINES.items()}}
    log = tmp_path / "some.log"
    log.write_bytes(NEEDLES[framework] * 10_000 if other == "needles alone" else content[other])

    assert bool(llmb.parse([log], framework=framework).series.steps) is (framework == other)


COLOURINGS = {
    "numbers": (rb"\d[\d.]*(?:E[+-]\d+)?", b"\x1b[1;36m", b"\x1b[0m"),
    "words": (rb"[A-Za-z]\w*", b"\x1b[33m", b"\x1b[m\x1b[K"),
    "lines": (rb".+", b"\x1b[2m", b"\x1b[0m"),
}


@pytest.mark.parametrize("framework", LINES)
@pytest.mark.parametrize("colouring", COLOURINGS)
def test_colours_change_nothing(tmp_path: Path, framework: str, colouring: str) -> None:
    plain, coloured = tmp_path / "plain.log", tmp_path / "coloured.log"
    parts, begin, end = COLOURINGS[colouring]
    plain.write_bytes(LINES[framework])
    coloured.write_bytes(re.sub(parts, lambda part: begin + part[0] + end, LINES[framework]))

    [step] = llmb.parse([coloured], framework=framework).series.steps

    assert step == llmb.parse([plain], framework=framework).series.steps[0]
