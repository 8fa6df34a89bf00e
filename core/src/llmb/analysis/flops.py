"""Model FLOPs of one training sequence, computed with the formula of a recipe's publisher.

With L layers, h hidden, s sequence length, q query groups, a heads, f FFN, V vocabulary and k experts per token, the
FLOPs of one sequence (forward and backward) are s x (attention + MLP + embedding). The formulas of two publishers
differ by 5 to 15 %, so two values of MFU are comparable only if both use the same formula. Each formula assumes that
heads x head size is the hidden size.
"""

from __future__ import annotations

from llmb.values.model import FlopFormula, Model


def flops_per_sequence(model: Model, formula: FlopFormula) -> float:
    """Return the FLOPs of one sequence of ``model.seq_len`` tokens, which is a global batch of 1.

    Source: the notes of the DGX Cloud benchmarking READMEs, release 24.11 ("model flops for GBS=1").
    """
    per_token = attention_flops(model, formula) + mlp_flops(model) + embedding_flops(model)
    return model.seq_len * per_token


def attention_flops(model: Model, formula: FlopFormula) -> float:
    """Return the FLOPs per token of the attention in all layers.

    - full: 12 L h^2 (1 + q/a + s/h). Used by Llama 3.1 and Llama 2: each query is compared with each key.
    - causal: 12 L h^2 (1 + q/a + s/2h), because half of the scores are masked. Used by Grok-1, and by most frameworks
      for the TFLOP/s that they log.
    - full-without-gqa: 24 L h^2 + 12 L h s, with keys and values as wide as queries (q = a). Used by Nemotron-4.
    """
    keys_and_values = 1.0 if formula == "full-without-gqa" else model.query_groups / model.heads
    scores = model.seq_len / model.hidden * (0.5 if formula == "causal" else 1.0)
    return 12 * model.layers * model.hidden**2 * (1 + keys_and_values + scores)


def mlp_flops(model: Model) -> float:
    """Return the FLOPs per token of the MLP in all layers: 18 L f h k if gated (three matrices), else 12 L f h k (two).

    Source: Llama READMEs (gated, k = 1), Grok-1 README (gated, k = 2), Nemotron-4 README (plain: 48 L h^2, which is
    12 L f h with f = 4 h).
    """
    return (18 if model.gated else 12) * model.layers * model.ffn * model.hidden * model.top_k


def embedding_flops(model: Model) -> float:
    """Return the FLOPs per token of the projection to the vocabulary: 6 V h, with the publisher's vocabulary size."""
    return 6 * (model.flops_vocab or model.vocab) * model.hidden
