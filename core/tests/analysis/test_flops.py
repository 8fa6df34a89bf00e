"""FLOPs of one sequence, against the integers that the publishers work out in their READMEs and against hand sums."""

from __future__ import annotations

import attrs
import pytest

from llmb.analysis.flops import embedding_flops, flops_per_sequence, mlp_flops, projection_flops, score_flops
from llmb.values.model import FlopFormula, Mamba, Model, MultiLatentAttention, Packing

LLAMA2_70B = Model(layers=80, hidden=8192, ffn=28672, heads=64, query_groups=8, vocab=32000, seq_len=4096)
LLAMA3_8B = Model(layers=32, hidden=4096, ffn=14336, heads=32, query_groups=8, vocab=128256, seq_len=8192)
LLAMA3_70B = Model(layers=80, hidden=8192, ffn=28672, heads=64, query_groups=8, vocab=128256, seq_len=8192)
LLAMA3_405B = Model(layers=126, hidden=16384, ffn=53248, heads=128, query_groups=8, vocab=128256, seq_len=8192)

# Sizes that no one publishes, small enough to be summed by hand.
SMALL = Model(layers=2, hidden=8, ffn=20, heads=4, query_groups=2, vocab=50, seq_len=16)


def attention_flops(model: Model, formula: FlopFormula) -> float:
    """Return the FLOPs per token of the attention in all layers."""
    return projection_flops(model, formula) + score_flops(model, formula)


def test_the_terms_of_llama_2_are_the_integers_of_its_readme() -> None:
    assert attention_flops(LLAMA2_70B, "full") == 104_689_827_840
    assert mlp_flops(LLAMA2_70B, "full") == 338_228_674_560
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
    assert mlp_flops(SMALL, "full") == 5760
    assert mlp_flops(attrs.evolve(SMALL, gated=False), "full") == 3840


def test_each_token_passes_through_its_top_k_experts_only() -> None:
    assert mlp_flops(attrs.evolve(SMALL, experts=8, top_k=2), "full") == 2 * mlp_flops(SMALL, "full")


def test_a_publisher_may_count_another_vocabulary_than_the_models() -> None:
    assert embedding_flops(attrs.evolve(SMALL, flops_vocab=128)) == 6 * 128 * 8


def test_heads_may_be_wider_than_hidden_by_heads() -> None:
    wide = attention_flops(attrs.evolve(SMALL, head_size=5), "causal")
    # 6 x 2 layers x (queries and output 2 x 8 x 20, keys and values 2 x 8 x 10, scores and values 2 x 20 x 8)
    assert wide == 6 * 2 * (320 + 160 + 320)


def test_mla_counts_its_compressed_projections() -> None:
    mla = MultiLatentAttention(q_rank=6, kv_rank=4, head_size=3, rope_head_size=1, value_head_size=2)
    queries, keys_and_values = 6 * (8 + 4 * 4 + 1), 4 * (8 + 4 * 5 + 1)
    rotary_key, output, scores, values = 8 * 1, 4 * 2 * 8, 4 * 4 * 8, 4 * 2 * 8
    layer = queries + keys_and_values + rotary_key + output + scores + values
    assert attention_flops(attrs.evolve(SMALL, mla=mla), "causal") == 6 * 2 * layer
    direct = attrs.evolve(mla, q_rank=None)
    assert attention_flops(attrs.evolve(SMALL, mla=direct), "causal") == 6 * 2 * (layer - queries + 8 * 4 * 4)


def test_a_sliding_window_counts_its_mean_length_since_0_5() -> None:
    windowed = attrs.evolve(SMALL, sliding_window=4, full_attention_every=2)
    mean = (1 + 2 + 3 + 4 * 13) / 16  # keys of 16 queries, later tokens masked
    saved = 6 * 2 * 8 * (8 - mean)  # one of the two layers
    assert attention_flops(SMALL, "causal") - attention_flops(windowed, "megatron-bridge-0.5") == pytest.approx(saved)
    assert attention_flops(windowed, "megatron-bridge-0.1") == attention_flops(SMALL, "causal")
    longer = attrs.evolve(SMALL, sliding_window=16)
    assert attention_flops(longer, "megatron-bridge-0.5") == attention_flops(SMALL, "causal")


def test_frozen_weights_count_two_of_three_passes_and_scores_the_texts_that_share_a_sequence() -> None:
    weights = 6 * (2 * 8 * 2 * (8 + 4) + 2 * 3 * 20 * 8 + 50 * 8)
    scores = 12 * 2 * 8  # of each key, as without a mask
    assert flops_per_sequence(SMALL, "megatron-bridge-lora") == pytest.approx(16 * (2 / 3 * weights + scores * 16))
    packed = attrs.evolve(SMALL, packing=Packing(fill=0.75, length=5))
    expected = 0.75 * 16 * (2 / 3 * weights + scores * 5)
    assert flops_per_sequence(packed, "megatron-bridge-lora") == pytest.approx(expected)
    assert flops_per_sequence(packed, "megatron-bridge-0.5") == flops_per_sequence(SMALL, "megatron-bridge-0.5")


def test_experts_count_with_their_own_size_after_the_dense_layers() -> None:
    experts = attrs.evolve(SMALL, experts=8, top_k=2, expert_ffn=5, shared_expert_ffn=3, dense_layers=1)
    assert mlp_flops(experts, "causal") == 18 * 8 * (20 + 2 * 5 + 3)
    latent = attrs.evolve(experts, latent_size=4)
    assert mlp_flops(latent, "megatron-bridge-0.5") == 18 * 8 * (20 + 3) + 18 * 4 * 2 * 5 + 6 * 2 * 8 * 4
    assert mlp_flops(latent, "megatron-bridge-0.1") == mlp_flops(experts, "causal")


def test_only_silu_counted_as_gated_before_0_5() -> None:
    geglu = attrs.evolve(SMALL, activation="quick-gelu")
    assert mlp_flops(geglu, "megatron-bridge-0.1") == mlp_flops(attrs.evolve(SMALL, gated=False), "full")
    assert mlp_flops(geglu, "megatron-bridge-0.5") == mlp_flops(SMALL, "full")


def test_multi_token_prediction_adds_a_layer_a_projection_and_a_vocabulary() -> None:
    deeper, predicting = attrs.evolve(SMALL, layers=3), attrs.evolve(SMALL, mtp_depth=1)
    more = 16 * (6 * (3 * 8 + 2 * 64) + 6 * 50 * 8)
    assert flops_per_sequence(predicting, "causal") == flops_per_sequence(deeper, "causal") + more


def test_a_hybrid_counts_each_letter_of_its_pattern() -> None:
    mamba = Mamba(heads=4, head_size=4, groups=2, state=3)
    sizes = {"experts": 8, "top_k": 2, "expert_ffn": 5, "gated": False, "mamba": mamba}
    hybrid = attrs.evolve(SMALL, layers=5, layer_pattern="MM*-E", **sizes)
    attention = attention_flops(attrs.evolve(SMALL, layers=1), "causal")
    layer = 3 * (2 * 8 * (4 * 8 + 2 * 2 * 3 + 4) + 14 * 8 * 3 + 4 * 64)
    mlps = 12 * 8 * 20 + 12 * 8 * 2 * 5
    assert flops_per_sequence(hybrid, "causal") == 16 * (attention + 2 * layer + mlps + 6 * 50 * 8)
    predicting = attrs.evolve(hybrid, mtp_depth=2, mtp_pattern="*E")
    more = 2 * (attention + 12 * 8 * 2 * 5 + 6 * 50 * 8)
    assert flops_per_sequence(predicting, "causal") == flops_per_sequence(hybrid, "causal") + 16 * more
    windowed = attrs.evolve(hybrid, sliding_window=4)  # NVIDIA counts hybrids without a window
    assert flops_per_sequence(windowed, "megatron-bridge-0.5") == flops_per_sequence(hybrid, "megatron-bridge-0.5")
    deep = attrs.evolve(hybrid, mtp_depth=2**31 - 1, mtp_pattern="*E")  # as a text, this would take 4 GiB
    assert flops_per_sequence(deep, "causal") == pytest.approx(16 * (2**31 - 1) * more / 2)


@pytest.mark.parametrize(("tp", "vocab"), [(1, 64), (4, 128)])
def test_the_vocabulary_is_padded_for_its_ranks(tp: int, vocab: int) -> None:
    assert embedding_flops(attrs.evolve(SMALL, vocab_divisor=32), tp) == 6 * vocab * 8
    assert embedding_flops(SMALL, tp) == 6 * 50 * 8


@pytest.mark.parametrize("factor", [2, 3])
def test_all_but_the_embedding_grows_with_the_layers(factor: int) -> None:
    deep = attrs.evolve(SMALL, layers=factor * SMALL.layers)
    embedding = SMALL.seq_len * embedding_flops(SMALL)
    body = flops_per_sequence(SMALL, "full") - embedding
    assert flops_per_sequence(deep, "full") == pytest.approx(factor * body + embedding)
