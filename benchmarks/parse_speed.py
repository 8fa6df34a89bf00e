"""How fast a log is parsed, beside ``grep -c`` on the same file, and in how much memory.

    python benchmarks/parse_speed.py [--mb 500] [--repeats 5]

Two logs are made. ``noisy`` is like that of a real GPU job: one step line in some 20 kB of what NCCL, XLA, absl and
torch print. ``dense`` has nothing but the step lines of eight ranks; grep has little to skip there, and every line
costs Python what a step costs. Only the first one has a bar to pass. The best of several repeats counts, taken in
turns, so that a busy machine hurts both. grep's own speed depends on the text between the steps (by two, as seen on
real logs): the ratio does, too.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from llmb.logs.reading import feed_file
from llmb.logs.series import StepSeries
from llmb_maxtext.log import MaxTextLog

BAR = 0.5  # of grep's speed
FLAT_MB = 8.0  # how much more memory ten times the log may take
MB = 1_000_000
STEP_EVERY = 20_000  # bytes
STEP = (
    "{prefix}completed step: {step}, seconds: {s:.3f}, TFLOP/s/device: {t:.3f}, Tokens/s/device: {k:.3f}, "
    "total_weights: 196608, loss: {loss:.3f}\n"
)

# What real logs print between their steps, with numbers for the places marked d (decimal) and x (hexadecimal).
NOISE = (
    "node-d:ddddd:ddddd [d] NCCL INFO Channel dd/0 : d[d] -> d[d] via P2P/CUMEM/read\n",
    "node-d:ddddd:ddddd [d] NCCL INFO dd coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p "
    "channels per peer\n",
    "node-d:ddddd:ddddd [d] NCCL INFO comm 0xxxxxxxxxxxx rank d nranks dd cudaDev d busId d000 - Init COMPLETE\n",
    "[rankd]:[Wddd dd:dd:dd.ddddddddd ProcessGroupNCCL.cpp:dddd] Warning: [PG ID 0 PG GUID 0(default_pg) Rank d] An "
    "unbatched P2P op (send/recv) was called on this ProcessGroup with size dd.\n",
    "I0317 dd:dd:dd.dddddd ddddd isa_program_util_common.cc:493] (HLO module jit_train_step): Host transfer "
    "fingerprint:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
    "W0317 dd:dd:dd.dddddd ddddd hlo_rematerialization.cc:3005] Can't reduce memory use below dd.ddGiB (ddddddddddd "
    "bytes) by rematerialization; only reduced to dd.ddGiB\n",
    "I0317 dd:dd:dd.dddddd 14011093716dddd base_pytree_checkpoint_handler.py:130] [process=0] /jax/orbax/write/"
    "gbytes_per_sec: ddd.ddd MiB/s (total gbytes: d.d GiB) (time elapsed: d.dddddd s) (per-host)\n",
    "I0317 dd:dd:dd.dddddd 14011093716dddd checkpoint_manager.py:1512] [process=0] Saving checkpoint at step ddd\n",
    "2026-03-17 dd:dd:dd.dddddd: W external/xla/xla/service/gpu/gpu_compiler.cc:ddd] The NVIDIA driver's CUDA version "
    "is dd.d which is older than the PTX compiler version\n",
    "/usr/local/lib/python3.12/dist-packages/jax/_src/interpreters/mlir.py:ddd: UserWarning: Some donated buffers "
    "were not usable: ShapedArray(bfloat16[dddd,dddd])\n",
)


def noisy(size: int) -> Iterator[bytes]:
    """One step in each `STEP_EVERY` bytes."""
    numbers = random.Random(1)  # noqa: S311  # not a secret
    stretches = [_noise(numbers, STEP_EVERY - 160) for _ in range(200)]
    step = 0
    while size > 0:
        block = numbers.choice(stretches) + _step(numbers, step, "I0317 10:00:13.224641 140110937 metric_logger.py:181] ")
        yield block
        size, step = size - len(block), step + 1


def dense(size: int) -> Iterator[bytes]:
    """Eight ranks, labelled as srun does it, and nothing between their steps."""
    numbers = random.Random(2)  # noqa: S311  # not a secret
    step = 0
    while size > 0:
        block = b"".join(_step(numbers, step, f"{rank}: ") for rank in range(8))
        yield block
        size, step = size - len(block), step + 1


def _noise(numbers: random.Random, size: int) -> bytes:
    text = ""
    while len(text) < size:
        line = numbers.choice(NOISE)
        prefix, words = (line[:4], line[4:]) if line.startswith("node") else ("", line)
        text += prefix + "".join(_filled(numbers, word) for word in words.split(" ")).lstrip() if prefix else _line(numbers, line)
    return text.encode()
