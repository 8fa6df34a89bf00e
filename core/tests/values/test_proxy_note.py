"""The note that a run trains another model than the recipe's."""

from __future__ import annotations

import attrs
import pytest

from llmb import Model
from llmb.values.model import proxy_note

LLAMA_8B = Model(layers=32, hidden=4096, ffn=14336, heads=32, query_groups=8, vocab=128256, seq_len=8192)


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ({"layers": 2, "ffn": 64}, "2 of 32 layers, sequences of 8192 tokens"),
        ({"ffn": 64, "heads": 16}, "32 of 32 layers, sequences of 8192 tokens, changed: ffn, heads"),
        ({"seq_len": 64}, "32 of 32 layers, sequences of 64 tokens"),
    ],
)
def test_a_proxy_names_the_sizes_that_differ(changes: dict[str, int], sizes: str) -> None:
    assert proxy_note(attrs.evolve(LLAMA_8B, **changes), LLAMA_8B) == f"proxy: the model is not the recipe's ({sizes})"
