"""The table of dense peaks in docs/mfu.md."""

from __future__ import annotations

from pathlib import Path

from marked_part import replace_between

from llmb.recipes.accelerators import accelerators

PAGE = Path(__file__).parents[1] / "docs/mfu.md"
BEGIN, END = "<!-- peaks: written by tools/write_docs.py -->\n", "<!-- end of peaks -->"
DTYPES = ("bf16", "fp8", "nvfp4")


def with_peaks(text: str) -> str:
    """Return the text with the table of all accelerators between its two marks."""
    return replace_between(BEGIN, END, _table(), text)


def _table() -> str:
    lines = ["| GPU type | BF16 | FP8 | NVFP4 | memory GB | GPUs per node | source |", "|---|---|---|---|---|---|---|"]
    for name, each in accelerators().items():
        peaks = [f"{each.peak_flops[dtype] / 1e12:g}" if dtype in each.peak_flops else "" for dtype in DTYPES]
        if any(peaks):
            cells = (f"`{name}`", *peaks, f"{each.memory_gb:g}", str(each.gpus_per_node), each.source)
            lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)
