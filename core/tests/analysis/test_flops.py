"""FLOPs of one sequence, against the integers that the publishers work out in their READMEs and against hand sums."""

from __future__ import annotations

import attrs
import pytest

from llmb.analysis.flops import attention_flops, embedding_flops, flops_per_sequence, mlp_flops
from llmb.values.model import FlopFormula, Model

LLAMA2_70B = Model(layers=80, hidden=8192, ffn=28672, heads=64, query_groups=8, vocab=32000, seq_len=4096)
LLAMA3_8B = Model(layers=32, hidden=4096, ffn=14336, heads=32, query_groups=8, vocab=128256, seq_len=8192)
LLAMA3_70B = Model(layers=80, hidden=8192, ffn=28672, heads=64, query_groups=8, vocab=128256, seq_len=8192)
LLAMA3_405B = Model(layers=126, hidden=16384, ffn=53248, heads=128, query_groups=8, vocab=128256, seq_len=8192)

# Sizes that no one publishes, small enough to be summed by hand.
SMALL = Model(layers=2, hidden=8, ffn=20, heads=4, query_groups=2, vocab=50, seq_len=16)


def test_the_terms_of_llama_2_are_the_integers_of_its_readme() -> None:
    assert attention_flops(LLAMA2_70B, "full") == 104_689_827_840
    assert mlp_flops(LLAMA2_70B) == 338_228_674_560
    assert embedding_flops(LLAMA2_70B) == 1_572_864_000
    assert flops_per_sequence(LLAMA2_70B, "full") == 4096 * (104_689_827_840 + 338_228_674_560 + 1_572_864_000)


@pytest.mark.parametrize(
    ("model", "formula", "published"),
    [
        (LLAMA3_8B, "full", 4.744e14),
        (LLAMA3_70B, "full", 3.94e15),
        (LLAMA2_70B, "full", 1.82e15),
        (LLAMA3_8B, "causal", 4.2165e14),
        (LLAMA3_70B, "causal", 3.68e15),
        (LLAMA3_405B, "causal", 2.068e16),
    ],
)
def test_a_model_has_the_flops_that_its_publisher_states(model: Model, formula: FlopFormula, published: float) -> None:
    assert flops_per_sequence(model, formula) == pytest.approx(published, rel=3e-3)


@pytest.mark.parametrize(
    ("formula", "attention"),
    [
        ("full", 12 * 2 * 64 * 7 / 2),  # 1 + 2/4 + 16/8 = 3.5
        ("causal", 12 * 2 * 64 * 5 / 2),  # 1 + 2/4 + 16/16 = 2.5
        ("full-without-gqa", 24 * 2 * 64 + 12 * 2 * 8 * 16),  # Nemotron-4's own way of writing it
    ],
)
def test_each_formula_counts_attention_in_its_own_way(formula: FlopFormula, attention: float) -> None:
    assert attention_flops(SMALL, formula) == attention
    assert flops_per_sequence(SMALL, formula) == 16 * (attention + 18 * 2 * 20 * 8 + 6 * 50 * 8)


def test_a_plain_mlp_has_two_matrices_and_a_gated_one_three() -> None:
    assert mlp_flops(SMALL) == 5760
    assert mlp_flops(attrs.evolve(SMALL, gated=False)) == 3840


def test_each_token_passes_through_its_top_k_experts_only() -> None:
    assert mlp_flops(attrs.evolve(SMALL, experts=8, top_k=2)) == 2 * mlp_flops(SMALL)


def test_a_publisher_may_count_another_vocabulary_than_the_models() -> None:
    assert embedding_flops(attrs.evolve(SMALL, flops_vocab=128)) == 6 * 128 * 8


@pytest.mark.parametrize("factor", [2, 3])
def test_all_but_the_embedding_grows_with_the_layers(factor: int) -> None:
    deep = attrs.evolve(SMALL, layers=factor * SMALL.layers)
    embedding = SMALL.seq_len * embedding_flops(SMALL)
    body = flops_per_sequence(SMALL, "full") - embedding
    assert flops_per_sequence(deep, "full") == pytest.approx(factor * body + embedding)
