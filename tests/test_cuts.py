"""Property of all parsers: the result does not depend on how a log is cut into blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llmb import Notice, Step
from llmb.logs import read_blocks
from llmb.parsing.parse_log import LogReader
from llmb.plugins.registry import PluginRegistry

FRAMEWORKS = ["maxtext", "megatron_bridge", "nemo_launcher"]
REGISTRY = PluginRegistry()

STEPS = [
    "completed step: {n}, seconds: {s}.500, TFLOP/s/device: 288.187, total_weights: 4096, loss: 1.9{n}",
    "completed step: {n}, seconds: {s}.500, loss: nan",
    " iteration {n}/ 20 | consumed samples: 8 | elapsed time per iteration (ms): {s}500.0 | lm loss: 7.5E+00 |",
    " iteration {n}/ 100 | elapsed time per iteration (ms): {s}500.0 | grad norm: nan |",
    " iteration {n}/ 20 | consumed samples: 8 |\n elapsed time per iteration (ms): {s}500.0 | lm loss: 1.0 |",
    "Step Time : {s}.50s GPU utilization: 400.5MODEL_TFLOP/s/GPU",
    "Training epoch 0, iteration {n}/19 | global_step: {n} | loss: 11.2 | train_step_timing in s: {s}.123",
    "\rEpoch 1: : 9%|x | {n}/20 [00:49<07:25, reduced_train_loss=1.{n}, global_step={n}.0, train_step_timing in s={s}]",
]
OTHERS = [
    *("", "noise", "    buffer_size: 5", "completed step: ", "elapsed time per iteration", "Training epoch "),
    *("\n" * 4097, " " * 4090, "y" * 16_300, "z" * 40_000, "\0\0", "Aborting training due to NaN loss."),
    *("\x1b[1;36m", "\x1b[2K\x1b[1G", "\x1b]8;;http://a\x1b\\", "\x1b]" + "q" * 5000 + "\x07", "\x1b[", "\x1b"),
]
ENDS = [
    "torch.OutOfMemoryError: CUDA out of memory.",
    'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    main()\nValueError: no data',
    "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT 2026-11-21T06:57:14 DUE TO TIME LIMIT ***",
    "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL",
]
LABELS = ["", "", "", "0: ", " 3: ", "[default1]:", "node-7: "]

step_lines = st.builds(str.format, st.sampled_from(STEPS), n=st.integers(0, 12), s=st.integers(1, 9))
ending_lines = st.sampled_from(ENDS).map(lambda text: f"{text}\n")
lines = st.tuples(
    st.sampled_from(LABELS),
    st.one_of(step_lines, step_lines, st.sampled_from(OTHERS)),
    st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", ""]),
).map("".join)
logs = st.lists(lines, min_size=1, max_size=10).map(lambda parts: "".join(parts).encode())


def read(framework: str, blocks: Sequence[bytes]) -> tuple[list[str], int | None]:
    parser = REGISTRY.framework(framework).parse_log(run=None)
    found: list[Step | Notice] = [item for block in blocks for item in parser.feed(block)]
    return [repr(item) for item in [*found, *parser.close()]], parser.first_step


LINK = b"completed step: 1, seconds: 2.500, loss: 3.000\x1b]" + b"q" * 5000 + b"\x07\n"
WRAPPED = b" iteration 3/ 20 | consumed samples: 8 |%b elapsed time per iteration (ms): 500.0 | lm loss: 1.0 |\n"
BLANK_LINES = b"noise\n" + WRAPPED % (b"\n" * 5000)
LONG_LINE = WRAPPED % (b"\n" + WRAPPED[:40] + b"y" * 17_000 + b"\n")


@pytest.mark.parametrize("framework", FRAMEWORKS)
@settings(max_examples=100)
@example(log=LINK, places=[0.9, 0.95], every=0)
@example(log=BLANK_LINES, places=[0.02, 0.5], every=0)
@example(log=LONG_LINE, places=[0.5], every=0)
@given(log=logs, places=st.lists(st.floats(0, 1), max_size=6), every=st.sampled_from([0, 1, 7, 4096]))
def test_the_steps_of_a_log_are_the_same_however_it_is_cut(
    framework: str, log: bytes, places: Sequence[float], every: int
) -> None:
    cuts = sorted(int(place * len(log)) for place in places)
    if every and len(log) < 3000 * every:
        cuts = [*range(0, len(log), every)]
    blocks = [log[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(log)], strict=True)]

    assert read(framework, blocks) == read(framework, [log])


def parsed(framework: str, log: bytes, block: int) -> dict[str, Any]:
    """Return what ``llmb parse --json`` prints. The evidence may lack the beginning of a line."""
    with TemporaryDirectory() as folder, mock.patch.object(read_blocks, "BLOCK_BYTES", block):
        path = Path(folder, "run.log")
        path.write_bytes(log)
        document = LogReader(framework=framework, registry=REGISTRY).read([path]).as_dict()
    text = json.dumps(document).replace(folder, "FOLDER")
    return json.loads(re.sub(r'"evidence": "[^"]*"', '"evidence": ""', text))  # type: ignore[no-any-return]  # JSON


ERROR_IN_STEP = f"{STEPS[0].format(n=0, s=1)}{ENDS[0]}\n"
LONG_MESSAGE = (
    "y" * 16_300 + "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT 2026-11-21T06:57:14 DUE TO TIME LIMIT ***\n"
)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@settings(max_examples=30)
@example(log=ERROR_IN_STEP, block=64)
@example(log=LONG_MESSAGE, block=64)
@given(
    log=st.lists(st.one_of(lines, lines, ending_lines), max_size=12).map("".join),
    block=st.sampled_from([64, 1000, 5000]),
)
def test_status_and_failure_of_a_log_are_the_same_however_it_is_cut(framework: str, log: str, block: int) -> None:
    assert parsed(framework, log.encode(), block) == parsed(framework, log.encode(), 1 << 20)
