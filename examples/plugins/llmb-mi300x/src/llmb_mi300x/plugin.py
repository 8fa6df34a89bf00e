"""Extension plugin for AMD Instinct MI300X: its peak FLOP/s and memory, and its out-of-memory error."""

from __future__ import annotations

from collections.abc import Iterable

from llmb import Accelerator, ExtensionHooks, Signature, hookimpl

ACCELERATOR = Accelerator(
    name="mi300x",
    gpus_per_node=8,  # AMD Instinct MI300X Platform data sheet: eight on one board
    memory_gb=192,  # AMD Instinct MI300X data sheet: HBM3
    peak_flops={
        "bf16": 1307.4e12,  # same data sheet, without structured sparsity (2614.9 with it)
        "fp8": 2614.9e12,  # same data sheet, without structured sparsity (5229.8 with it)
    },
    source="AMD Instinct MI300X data sheet (dense)",
)

OUT_OF_MEMORY = Signature(
    needle="HIP out of memory",
    cause="the accelerator is out of memory",
    remedy="divide the model over more GPUs (tp, fsdp), or use a smaller micro batch",
    source="an exception of PyTorch on ROCm",
)


class MI300X(ExtensionHooks):
    """One accelerator and one failure signature."""

    @hookimpl
    def accelerators(self) -> Iterable[Accelerator]:
        """Return the MI300X."""
        return (ACCELERATOR,)

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the signature of an out-of-memory error in ROCm."""
        return (OUT_OF_MEMORY,)
