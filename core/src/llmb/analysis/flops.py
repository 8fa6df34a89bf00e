"""Model FLOPs of one training sequence, computed with the formula of a recipe's publisher.

All functions return the FLOPs of training one token, forward and backward, over all layers. A matrix multiplication
counts 2 FLOPs for each multiply-add, and 3 times: once forward and twice backward. Recomputation is not counted.

Two publishers count the same model differently, by 5 to 20 %. So two values of MFU or TFLOP/s are comparable only if
both use the same formula.
"""

import math
from collections import Counter
from collections.abc import Mapping

import attrs

from llmb.values.frozen import FrozenMap
from llmb.values.model import FlopFormula, Model, MultiLatentAttention

_TRAINING = 3 * 2
"""FLOPs of training per multiply-add: forward and backward are 3 passes of 2 FLOPs each."""

_FROZEN = 2 / 3
"""Share of the passes of a frozen weight: it has no gradient, so the backward pass is one pass instead of two."""

FLOPS_PER_PARAMETER = 6
"""FLOPs per parameter and token: 2 forward, 4 backward. Source: Kaplan et al. 2020, arXiv 2001.08361, section 2.1."""


@attrs.frozen(kw_only=True)
class Convention:
    """Choices of a publisher in counting FLOPs.

    - ``masked_scores``: half of the attention scores count, because later tokens are masked.
    - ``grouped_keys``: keys and values have ``query_groups`` heads. Otherwise they are as wide as queries.
    - ``windows``: a sliding window limits the scores. Otherwise each layer counts as full attention.
    - ``latent_experts``: experts of a transformer count with their latent size. Those of a hybrid always do.
    - ``gated_activations``: the activations for which a gated MLP counts three matrices; None means all.
    - ``frozen_weights``: weights have no gradients, so they count twice instead of 3 times. Only the text of packed
      sequences counts.
    """

    masked_scores: bool = True
    grouped_keys: bool = True
    windows: bool = False
    latent_experts: bool = True
    gated_activations: tuple[str, ...] | None = None
    frozen_weights: bool = False


CONVENTIONS: Mapping[str, Convention] = FrozenMap(
    {
        # Llama 3.1 and Llama 2, notes of the DGX Cloud benchmarking READMEs, release 24.11 ("model flops for GBS=1").
        "full": Convention(masked_scores=False),
        # Grok-1, the same release; and most frameworks for the TFLOP/s that they log.
        "causal": Convention(),
        # Nemotron-4, the same release: attention is 24 L h^2 + 12 L h s.
        "full-without-gqa": Convention(masked_scores=False, grouped_keys=False),
        # Megatron-Bridge, src/megatron/bridge/training/utils/flop_utils.py, 0.1.0 to 0.4.x (NeMo 25.09 to 26.04.01).
        # A gated MLP has three matrices only with SiLU, so GPT-OSS (quick-GEGLU) counts two.
        "megatron-bridge-0.1": Convention(latent_experts=False, gated_activations=("silu",)),
        # The same file from 0.5.0 on (NeMo 26.06): GPT-OSS 120B counts 20 % more for each token.
        "megatron-bridge-0.5": Convention(windows=True),
        # The same file for LoRA of Llama 3 70B on packed SQuAD, in 0.3.1 (NeMo 26.02.01) and later. The adapters do not
        # count, and scores count without the mask.
        "megatron-bridge-lora": Convention(masked_scores=False, frozen_weights=True),
    }
)
"""The convention of each formula."""


def flops_per_sequence(model: Model, formula: FlopFormula, *, tp: int = 1) -> float:
    """Return the FLOPs of one sequence of ``model.seq_len`` tokens, which is a global batch of 1.

    ``tp`` counts if the model has a ``vocab_divisor``, because the framework pads the vocabulary for its ranks.
    """
    weights = (
        projection_flops(model, formula)
        + mamba_flops(model)
        + mlp_flops(model, formula)
        + mtp_projection_flops(model)
        + embedding_flops(model, tp)
    )
    scores = score_flops(model, formula)
    if CONVENTIONS[formula].frozen_weights:
        fill = model.packing.fill if model.packing else 1
        return model.seq_len * fill * (_FROZEN * weights + scores)
    return model.seq_len * (weights + scores)


@attrs.frozen
class LayerCounts:
    """The number of layers of each kind, with those of multi-token prediction. A transformer layer is two of them."""

    attention: int
    mamba: int
    dense: int
    experts: int


def _count_layers(model: Model) -> LayerCounts:
    """Return the number of layers of each kind."""
    if model.layer_pattern is not None:
        letters, more = Counter(model.layer_pattern), Counter(model.mtp_pattern or "")
        return LayerCounts(*(letters[kind] + model.mtp_depth * more[kind] for kind in "*M-E"))
    layers = model.layers + model.mtp_depth
    has_experts = model.experts > 1 and model.dense_layers < model.layers
    dense = model.dense_layers if has_experts else layers
    return LayerCounts(attention=layers, mamba=0, dense=dense, experts=layers - dense)


def projection_flops(model: Model, formula: FlopFormula) -> float:
    """Return the FLOPs per token of the projections in all layers: to queries, keys and values, and of the output.

    With heads x head size = h, projections and scores together become 12 L h^2 (1 + q/a + s/h) for "full" and
    12 L h^2 (1 + q/a + s/2h) for "causal", where q are the query groups and a the heads.
    """
    if model.mla is not None:
        products: float = _mla_projections(model, model.mla)
    else:
        groups = model.query_groups if CONVENTIONS[formula].grouped_keys else model.heads
        products = model.hidden * head_size(model) * (2 * model.heads + 2 * groups)
    return _TRAINING * _count_layers(model).attention * products


def score_flops(model: Model, formula: FlopFormula) -> float:
    """Return the FLOPs per token of the attention scores and of the weighted values in all layers."""
    convention = CONVENTIONS[formula]
    count = _count_layers(model).attention
    windowed = _windowed_layers(model) if convention.windows else 0
    if model.mla is not None:
        width: float = model.heads * (model.mla.head_size + model.mla.rope_head_size + model.mla.value_head_size)
    else:
        width = 2 * model.heads * head_size(model)
    length = model.packing.length if model.packing and convention.frozen_weights else model.seq_len
    full = length / 2 if convention.masked_scores else length
    keys = (count - windowed) * full + windowed * mean_window(model)
    return _TRAINING * width * keys


def head_size(model: Model) -> float:
    """Return the size of an attention head."""
    return model.head_size or model.hidden / model.heads


def _mla_projections(model: Model, mla: MultiLatentAttention) -> float:
    """Return the multiply-adds per token of the projections of MLA. Each compressed vector has a norm (``+ 1``)."""
    query = model.heads * (mla.head_size + mla.rope_head_size)
    queries = model.hidden * query if mla.q_rank is None else mla.q_rank * (model.hidden + query + 1)
    keys_and_values = mla.kv_rank * (model.hidden + model.heads * (mla.head_size + mla.value_head_size) + 1)
    rotary_key = model.hidden * mla.rope_head_size
    output = model.heads * mla.value_head_size * model.hidden
    return queries + keys_and_values + rotary_key + output


def _windowed_layers(model: Model) -> int:
    """Return the number of layers with a sliding window: all except every ``full_attention_every``-th.

    NVIDIA counts all layers of hybrids as full attention.
    """
    if model.sliding_window is None or model.layer_pattern is not None:
        return 0
    return model.layers - (model.layers // model.full_attention_every if model.full_attention_every else 0)


def mean_window(model: Model) -> float:
    """Return the mean number of keys of a query in a causal window: W - W (W - 1) / 2s, or s/2 if W is not below s."""
    window, length = model.sliding_window or model.seq_len, model.seq_len
    return length / 2 if window >= length else window - window * (window - 1) / (2 * length)


def mamba_flops(model: Model) -> float:
    """Return the FLOPs per token of all Mamba layers: projections, scan and output.

    3 n (2 h (4 h + 2 g N + m) + 14 h N + 4 h^2) with groups g, state N and heads m. NVIDIA takes the inner size as 2 h,
    whatever heads x head size is.
    """
    count = _count_layers(model).mamba
    if model.mamba is None or not count:
        return 0
    h, mamba = model.hidden, model.mamba
    projections = 2 * h * (4 * h + 2 * mamba.groups * mamba.state + mamba.heads)
    return 3 * count * (projections + 14 * h * mamba.state + 4 * h**2)


def mlp_flops(model: Model, formula: FlopFormula) -> float:
    """Return the FLOPs per token of all MLPs and experts: 18 L f h if gated (three matrices), else 12 L f h (two)."""
    counts, gated_activations = _count_layers(model), CONVENTIONS[formula].gated_activations
    is_gated = model.gated and (gated_activations is None or model.activation in gated_activations)
    matrices = 3 if is_gated else 2
    dense = matrices * model.ffn * model.hidden
    return _TRAINING * (counts.dense * dense + counts.experts * _expert_products(model, formula, matrices))


def _expert_products(model: Model, formula: FlopFormula, matrices: int) -> int:
    """Return the multiply-adds per token of one layer's routed and shared experts.

    With a latent size, routed experts work on narrower vectors, and two more matrices project to them and back.
    """
    ffn = model.top_k * (model.expert_ffn or model.ffn)
    shared = matrices * model.shared_expert_ffn * model.hidden
    if model.latent_size is None or not (CONVENTIONS[formula].latent_experts or model.layer_pattern):
        return matrices * ffn * model.hidden + shared
    return matrices * ffn * model.latent_size + 2 * model.hidden * model.latent_size + shared


def mtp_projection_flops(model: Model) -> float:
    """Return the FLOPs per token of the norms and the projection before the layers of multi-token prediction.

    6 M (3 h + 2 h^2) for M tokens. NVIDIA does not count them in hybrids.
    """
    if model.layer_pattern is not None:
        return 0
    return _TRAINING * model.mtp_depth * (3 * model.hidden + 2 * model.hidden**2)


def embedding_flops(model: Model, tp: int = 1) -> float:
    """Return the FLOPs per token of the projection to the vocabulary: 6 V h, once more for each predicted token.

    V is the vocabulary that the publisher counts, padded to a multiple of ``vocab_divisor`` x tp.
    """
    multiple = model.vocab_divisor * tp if model.vocab_divisor else 1
    vocab = math.ceil((model.flops_vocab or model.vocab) / multiple) * multiple
    return _TRAINING * vocab * model.hidden * (1 + model.mtp_depth)


def sequence_flops(
    model: Model | None, flop_formula: FlopFormula | None, flops_per_token: float | None, *, seq_len: int, tp: int
) -> float | None:
    """Return the FLOPs of one sequence, forward and backward, or None if they are unknown.

    ``tp`` is the tensor parallelism for which the framework pads the vocabulary.
    """
    if model is not None and flop_formula is not None:
        return flops_per_sequence(model, flop_formula, tp=tp)
    return None if flops_per_token is None else seq_len * flops_per_token
