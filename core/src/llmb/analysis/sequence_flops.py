"""FLOPs of one training sequence: of an architecture and a formula, or of the FLOPs per token that a recipe states."""

from __future__ import annotations

from llmb.analysis.flops import flops_per_sequence
from llmb.values.model import FlopFormula, Model

FLOPS_PER_PARAMETER = 6
"""FLOPs per parameter and token: 2 forward, 4 backward. Source: Kaplan et al. 2020, arXiv 2001.08361, section 2.1."""


def sequence_flops(
    *, model: Model | None, flop_formula: FlopFormula | None, flops_per_token: float | None, seq_len: int, tp: int
) -> float | None:
    """Return the FLOPs of one sequence, forward and backward, or None if they are unknown.

    ``tp`` is the tensor parallelism for which the framework pads the vocabulary.
    """
    if model is not None and flop_formula is not None:
        return flops_per_sequence(model, flop_formula, tp=tp)
    return None if flops_per_token is None else seq_len * flops_per_token
