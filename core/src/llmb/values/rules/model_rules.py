"""Checks of a model that hold for every framework.

Recipes and workload specs follow the same rules. Each function yields all errors, with the keys of a workload spec
(``model.layers``).
"""

from collections.abc import Iterable, Iterator

from llmb.values.errors import Fault
from llmb.values.model import Model
from llmb.values.texts.error_text import counted, not_divisible

LAYER_KINDS = "M*-E"
"""The letters of a layer pattern: Mamba, attention, MLP, experts."""

EXPERT_SIZES = ("expert_ffn", "shared_expert_ffn", "dense_layers", "latent_size")
"""Sizes that only a model with several experts has."""


def check_model(model: Model | None) -> Iterator[Fault]:
    """Yield all errors of a model: sizes that do not divide evenly, keys that contradict or require each other."""
    if model is None:
        return
    yield from _check_attention(model)
    yield from _check_experts(model)
    yield from _check_pattern(model)


def check_model_keys(names: Iterable[str], model: Model | None, table: str = "model") -> Iterator[Fault]:
    """Yield an error for each size that a recipe without an architecture does not have."""
    for name in names:
        if model is None and name != "seq_len":
            message = "the recipe states no architecture, so it has no such size"
            expected = "seq_len alone, or a table [model] in the recipe"
            yield Fault(message=message, key=f"{table}.{name}", expected=expected)


def _check_attention(model: Model) -> Iterator[Fault]:
    if model.head_size is None and model.mla is None and model.hidden % model.heads:
        message = f"hidden size {model.hidden} is not divisible by {counted(model.heads, 'head')}"
        yield Fault(message=message, key="model.hidden", expected=f"a multiple of {model.heads}")
    if model.heads % model.query_groups:
        message = not_divisible(model.heads, "head", counted(model.query_groups, "query group"))
        yield Fault(message=message, key="model.query_groups", expected=f"a divisor of {model.heads}")
    if model.full_attention_every is not None and model.sliding_window is None:
        message = "no layer has a window"
        yield Fault(message=message, key="model.full_attention_every", expected="model.sliding_window too")


def _check_experts(model: Model) -> Iterator[Fault]:
    needing_experts = [name for name in EXPERT_SIZES if getattr(model, name)] if model.experts == 1 else []
    for name in needing_experts:
        yield Fault(message="the model has no experts", key=f"model.{name}", expected="model.experts above 1")
    if model.top_k > model.experts and not needing_experts:
        message = f"{model.top_k} experts per token are more than the model's {model.experts}"
        yield Fault(message=message, key="model.top_k", expected=f"at most {model.experts}")
    if model.dense_layers > model.layers:
        message = f"{counted(model.dense_layers, 'dense layer')} of {model.layers}"
        yield Fault(message=message, key="model.dense_layers", expected=f"at most {model.layers}")


def _check_pattern(model: Model) -> Iterator[Fault]:
    """Yield the errors of a hybrid's layer pattern, and of keys that only a hybrid has."""
    if model.layer_pattern is None:
        if model.mtp_pattern is not None:
            yield Fault(message="the model is no hybrid", key="model.mtp_pattern", expected="model.layer_pattern too")
        return
    if len(model.layer_pattern) != model.layers:
        message = f"{counted(len(model.layer_pattern), 'layer')}, but the model has {model.layers}"
        yield Fault(message=message, key="model.layer_pattern", expected=f"{model.layers} letters")
    for name in ("layer_pattern", "mtp_pattern"):
        if unknown := set(getattr(model, name) or "") - set(LAYER_KINDS):
            message = f"unknown kind of layer {min(unknown)}"
            yield Fault(message=message, key=f"model.{name}", expected=f"the letters {' '.join(LAYER_KINDS)}")
    if model.mtp_depth and model.mtp_pattern is None:
        message = "a hybrid needs the layers of one depth"
        yield Fault(message=message, key="model.mtp_pattern", expected='a pattern such as "*E"')
    if "M" in model.layer_pattern and model.mamba is None:
        yield Fault(message="the sizes of the Mamba layers are missing", key="model.mamba", expected="a table")
    if "E" in model.layer_pattern and model.experts == 1:
        message = "the layer pattern has layers with experts"
        yield Fault(message=message, key="model.experts", expected="a number above 1")
