"""Made training logs that contain what real ones print, as often as they print it. See parse_speed.py."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

RECIPE_STEPS = 50
RUN_STEPS = 500
RANKS_EVERY = 500_000_000 // (512 * RECIPE_STEPS)  # bytes from one step line to the next
RANKS_2048_EVERY = 500_000_000 // (2048 * RECIPE_STEPS)
NOTEBOOK_EVERY = 394
BARS_EVERY = 8_040  # from one step to the next
PAIRS_EVERY = 5_500
PAIR = 430  # a step of two lines, without noise
MANY_PROCESSES_EVERY = 50_000
VARIETY = 4_000_000  # bytes of noise that are repeated in another order
ABSL = "I0317 10:00:13.224641 140110937163584 metric_logger.py:181] "
DIGITS = {"#": "0123456789", "~": "0123456789abcdef"}

# Lines that real logs contain between their steps; # is any digit, ~ any hexadecimal one.
NOISE = tuple(
    line + "\n"
    for line in (
        "node-#:#####:##### [#] NCCL INFO Channel ##/0 : #[#] -> #[#] via P2P/CUMEM/read",
        "node-#:#####:##### [#] NCCL INFO ## coll channels, 16 collnet channels, 16 p2p channels per peer",
        "node-#:#####:##### [#] NCCL INFO comm 0x~~~~~~~~~~~~ rank # nranks ## cudaDev # busId #000 - Init COMPLETE",
        "[rank#]:[W### ##:##:##.######### ProcessGroupNCCL.cpp:####] Warning: [PG ID 0 PG GUID 0(default_pg) Rank #] "
        "An unbatched P2P op (send/recv) was called on this ProcessGroup with size ##.",
        "I0317 ##:##:##.###### ##### isa_program_util_common.cc:493] (HLO module jit_train_step): Host transfer "
        "fingerprint:~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~",
        "W0317 ##:##:##.###### ##### hlo_rematerialization.cc:3005] Can't reduce memory use below ##.##GiB by "
        "rematerialization; only reduced to ##.##GiB (########### bytes)",
        "I0317 ##:##:##.###### 14011093716#### base_pytree_checkpoint_handler.py:130] [process=0] /jax/orbax/write/"
        "gbytes_per_sec: ###.### MiB/s (total gbytes: #.# GiB) (time elapsed: #.###### s) (per-host)",
        "I0317 ##:##:##.###### 14011093716#### checkpoint_manager.py:1512] [process=0] Saving checkpoint at step ###",
        "2026-03-17 ##:##:##.######: W external/xla/xla/service/gpu/gpu_compiler.cc:###] The NVIDIA driver's CUDA "
        "version is ##.# which is older than the PTX compiler version",
        "/usr/local/lib/python3.12/dist-packages/jax/_src/interpreters/mlir.py:###: UserWarning: Some donated buffers "
        "were not usable: ShapedArray(bfloat16[####,####])",
    )
)


def ranks(size: int, every: int) -> Iterator[bytes]:
    """Yield one step line in ``every`` bytes. All ranks print a step before one prints the next."""
    dice = random.Random(1)
    stretches = [_noise(dice, every - 190) for _ in range(VARIETY // every)]
    processes = max(1, size // (every * RECIPE_STEPS))
    line = 0
    while size > 0:
        step, rank = divmod(line, processes)
        block = dice.choice(stretches) + step_line(dice, step, f"{rank}: {ABSL}")
        yield block
        size, line = size - len(block), line + 1


def notebook(size: int) -> Iterator[bytes]:
    """Yield one step line in `NOTEBOOK_EVERY` bytes, of one process."""
    dice = random.Random(3)
    stretches = [_noise(dice, NOTEBOOK_EVERY - 270) for _ in range(5000)]
    step = 0
    while size > 0:
        block = dice.choice(stretches) + step_line(dice, step, ABSL)
        yield block
        size, step = size - len(block), step + 1


def dense_maxtext(size: int) -> Iterator[bytes]:
    """Yield step lines of one process, and nothing between them."""
    dice, step = random.Random(2), 0
    while size > 0:
        line = step_line(dice, step, ABSL)
        yield line
        size, step = size - len(line), step + 1


def dense_nemo(size: int) -> Iterator[bytes]:
    """Yield step lines of NeMo 2, and nothing between them."""
    dice, step = random.Random(6), 0
    while size > 0:
        line = (
            f"Training epoch 0, iteration {step}/999999 | lr: 3.0e-06 | global_batch_size: 128 | global_step: {step} | "
            f"reduced_train_loss: {dice.uniform(2, 12):.4g} | train_step_timing in s: {dice.uniform(5.6, 5.7):.4g} | "
            f"consumed_samples: {128 * step}\n"
        ).encode()
        yield line
        size, step = size - len(line), step + 1


def bars(size: int, every: int) -> Iterator[bytes]:
    """Yield NeMo's progress bar, drawn three times in ``every`` bytes."""
    dice = random.Random(4)
    stretches = [_noise(dice, every - 450) for _ in range(VARIETY // every)]
    step, before = 0, "v_num=None"
    while size > 0:
        time_s, loss = dice.uniform(14.6, 14.8), dice.uniform(2, 12)
        after = (
            f"v_num=None, reduced_train_loss={loss:.3f}, global_step={step:.3f}, "
            f"consumed_samples={128.0 * (step + 1)}, train_step_timing in s={time_s:.2f}"
        )
        step = step % RUN_STEPS + 1
        head = f"\rEpoch 0: :  10%|█         | {step}/{RUN_STEPS} [00:49<07:25"
        drawn = f"{head}]{head}, {before}]{head}, {after}]".encode()
        block = drawn + dice.choice(stretches)
        yield block
        size, before = size - len(block), after


def pairs(size: int, every: int) -> Iterator[bytes]:
    """Yield Megatron-Bridge's two lines in ``every`` bytes."""
    dice = random.Random(5)
    stretches = [_noise(dice, every - 430) for _ in range(VARIETY // every)]
    step = 0
    while size > 0:
        step, time_s = step % RUN_STEPS + 1, dice.uniform(5.6, 5.7)
        lines = (
            f"Step Time : {time_s:.2f}s GPU utilization: {9397.6 / time_s:.1f}MODEL_TFLOP/s/GPU\n"
            f" [2025-12-19 10:49:15] iteration {step:8d}/{RUN_STEPS:8d} | consumed samples: {64 * step:12d} | elapsed "
            f"time per iteration (ms): {1000 * time_s:.1f} | learning rate: 3.000000E-05 | global batch size:    64 | "
            f"lm loss: {dice.uniform(2, 12):.6E} | loss scale: 1.0 | grad norm: {dice.uniform(1, 12):.3f} | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
        block = dice.choice(stretches) + lines.encode()
        yield block
        size -= len(block)


def failed(log: bytes) -> Iterator[bytes]:
    """Yield a log and the failure of one of its ranks."""
    yield log
    yield b"Traceback (most recent call last):\n" + b'  File "train.py", line 3, in main\n' * 20
    yield b"7: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.16 GiB.\n"
    yield b"srun: error: node-1: task 7: Exited with exit code 1\n"


def _noise(dice: random.Random, size: int) -> bytes:
    text = ""
    while len(text) < size:
        text += re.sub("[#~]", lambda mark: dice.choice(DIGITS[mark[0]]), dice.choice(NOISE))
    return text.encode()


def step_line(dice: random.Random, step: int, prefix: str) -> bytes:
    time_s = dice.uniform(5.6, 5.7)
    return (
        f"{prefix}completed step: {step}, seconds: {time_s:.3f}, TFLOP/s/device: {764.67 / time_s:.3f}, "
        f"Tokens/s/device: {49152 / time_s:.3f}, total_weights: 196608, loss: {dice.uniform(2, 12):.3f}\n"
    ).encode()
