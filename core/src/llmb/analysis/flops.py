"""Model FLOPs of one training sequence, by the formula that a recipe's publisher uses.

With L layers, h hidden, s sequence length, q query groups, a heads, f FFN, V vocabulary and k experts per token, the
FLOPs of one sequence (forward and backward) are s x (attention + MLP + embedding). The formulas of two publishers
differ by 5 to 15 %, so that MFU means something only beside the formula's name. All assume that heads x head size
is the hidden size.
"""

from __future__ import annotations

from llmb.values.model import FlopFormula, Model


def flops_per_sequence(model: Model, formula: FlopFormula) -> float:
    """FLOPs of one sequence of ``model.seq_len`` tokens, a global batch of 1.

    Source: the notes of the DGX Cloud benchmarking READMEs, release 24.11 ("model flops for GBS=1").
    """
    per_token = attention_flops(model, formula) + mlp_flops(model) + embedding_flops(model)
    return model.seq_len * per_token


def attention_flops(model: Model, formula: FlopFormula) -> float:
    """FLOPs per token of the attention, all layers.

    - full: 12 L h^2 (1 + q/a + s/h). Llama 3.1 and Llama 2, whose READMEs count every query against every key.
    - causal: 12 L h^2 (1 + q/a + s/2h), half of the scores being masked. Grok-1, and the TFLOP/s that
      frameworks log as a rule.
    - full-without-gqa: 24 L h^2 + 12 L h s, keys and values as wide as queries (q = a). Nemotron-4.
    """
    keys_and_values = 1.0 if formula == "full-without-gqa" else model.query_groups / model.heads
    scores = model.seq_len / model.hidden * (0.5 if formula == "causal" else 1.0)
    return 12 * model.layers * model.hidden**2 * (1 + keys_and_values + scores)


def mlp_flops(model: Model) -> float:
    """FLOPs per token of the MLP, all layers: 18 L f h k gated (three matrices), 12 L f h k plain (two).

    Source: Llama READMEs (gated, k = 1), Grok-1 README (gated, k = 2), Nemotron-4 README (plain; its 48 L h^2 is
    this with f = 4 h).
    """
    return (18 if model.gated else 12) * model.layers * model.ffn * model.hidden * model.top_k


def embedding_flops(model: Model) -> float:
    """FLOPs per token of the projection to the vocabulary: 6 V h, with the vocabulary that the publisher counts."""
    return 6 * (model.flops_vocab or model.vocab) * model.hidden
