"""Extension __name__: a GPU type and a cause of failure."""

from collections.abc import Iterable

from llmb import Accelerator, ExtensionHooks, Signature, hookimpl


class __Name__(ExtensionHooks):
    """Replace these examples, and remove the hook that you do not need."""

    @hookimpl
    def accelerators(self) -> Iterable[Accelerator]:
        """Return GPU types that core's table lacks."""
        peaks = {"bf16": 500e12}  # dense, in FLOP/s
        return [
            Accelerator(
                name="__name__",
                gpus_per_node=8,
                memory_gb=80,
                peak_flops=peaks,
                source="data sheet",
            )
        ]

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return causes of failure, each identified by a text in the log."""
        text = "__name__: out of licences"
        return [Signature(needle=text, cause="no licence", remedy="wait for a licence")]
