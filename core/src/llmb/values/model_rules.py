"""Which models and divisions over GPUs are possible at all, whatever the framework.

A recipe and a workload spec are held to the same rules. Every function returns all faults at once; their keys are
those of a workload spec (``workload.gpus``, ``parallelism.tp``, ``model.layers``).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from llmb.values.error_text import counted
from llmb.values.errors import Fault
from llmb.values.model import Model, Parallelism


def model_faults(model: Model) -> tuple[Fault, ...]:
    """What is impossible in a model: sizes below 1, broken heads or query groups, more experts used than there are."""
    return tuple(_sizes_below_one("model", model)) or tuple(_model(model))


def parallelism_faults(
    model: Model, parallelism: Parallelism, gpus: int, *, gpus_per_node: int | None = None
) -> tuple[Fault, ...]:
    """What is impossible in dividing this model and batch over this many GPUs.

    Expert parallelism may share its ranks with data parallelism, so it is held against the GPUs, not multiplied with
    tp. Part of one node is allowed, parts of several are not; without ``gpus_per_node`` that is not looked at.
    """
    if gpus < 1:
        return (Fault(message=f"is {gpus}", key="workload.gpus", expected="at least 1"),)
    faults = tuple(_sizes_below_one("parallelism", parallelism)) + tuple(_sizes_below_one("model", model))
    if faults:
        return faults
    return (
        *_ranks(parallelism, gpus),
        *_pipeline(model, parallelism),
        *_tensor(model, parallelism),
        *_experts(model, parallelism, gpus),
        *node_faults(gpus, gpus_per_node),
    )


def _sizes_below_one(table: str, value: Model | Parallelism) -> Iterator[Fault]:
    for name, size in attrs.asdict(value).items():
        if isinstance(size, int) and not isinstance(size, bool) and size < 1:
            yield Fault(message=f"is {size}", key=f"{table}.{name}", expected="at least 1")


def _model(model: Model) -> Iterator[Fault]:
    if model.hidden % model.heads:
        message = f"a hidden size of {model.hidden} cannot be divided into {model.heads} heads of one size"
        yield Fault(message=message, key="model.hidden", expected=f"a multiple of {model.heads}")
    if model.heads % model.query_groups:
        message = f"{model.heads} heads cannot be divided into {model.query_groups} query groups"
        yield Fault(message=message, key="model.query_groups", expected=f"a divisor of {model.heads}")
    if model.top_k > model.experts:
        message = f"{model.top_k} experts a token are more than the {model.experts} there are"
        yield Fault(message=message, key="model.top_k", expected=f"at most {model.experts}")


def _ranks(parallelism: Parallelism, gpus: int) -> Iterator[Fault]:
    tp, pp, cp = parallelism.tp, parallelism.pp, parallelism.cp
    if gpus % (tp * pp * cp):
        message = f"{counted(gpus, 'GPU')} cannot be divided by tp x pp x cp = {tp} x {pp} x {cp} = {tp * pp * cp}"
        yield Fault(message=message, key="workload.gpus", expected=f"a multiple of {tp * pp * cp}")
    else:
        yield from _batch(parallelism, gpus)
    if gpus % parallelism.fsdp:
        message = f"{counted(gpus, 'GPU')} cannot be divided into {parallelism.fsdp} shards"
        yield Fault(message=message, key="parallelism.fsdp", expected=f"a divisor of {gpus}")


def _batch(parallelism: Parallelism, gpus: int) -> Iterator[Fault]:
    micro, dp = parallelism.micro_batch_size, parallelism.data_parallel(gpus)
    if parallelism.global_batch_size % (micro * dp):
        message = (
            f"a global batch of {parallelism.global_batch_size} cannot be divided by "
            f"micro batch x data parallel = {micro} x {dp} = {micro * dp}"
        )
        key = "parallelism.global_batch_size"
        yield Fault(message=message, key=key, expected=f"a multiple of {micro * dp}")


def _pipeline(model: Model, parallelism: Parallelism) -> Iterator[Fault]:
    pp, vp = parallelism.pp, parallelism.vp or 1
    if vp > 1 and pp == 1:
        message = f"{vp} interleaved stages need a pipeline, and pp is 1"
        yield Fault(message=message, key="parallelism.vp", expected="1, or pp above 1")
    extra = 2 if model.embedding_and_loss_as_layers else 0
    if pp > 1 and (model.layers + extra) % (pp * vp):
        layers = f"{model.layers} + 2 layers (embedding and loss counted)" if extra else f"{model.layers} layers"
        message = f"{layers} cannot be divided by pp x vp = {pp} x {vp} = {pp * vp}"
        expected = f"a multiple of {pp * vp}" + (", less 2" if extra else "")
        yield Fault(message=message, key="model.layers", expected=expected)


def _tensor(model: Model, parallelism: Parallelism) -> Iterator[Fault]:
    tp = parallelism.tp
    if model.heads % tp:
        message = f"{model.heads} heads cannot be divided by tp = {tp}"
        yield Fault(message=message, key="parallelism.tp", expected=f"a divisor of {model.heads}")
    # With more ranks than query groups, each group is copied to a whole number of ranks.
    elif model.query_groups % tp and tp % model.query_groups:
        message = f"{model.query_groups} query groups and tp = {tp}: neither is a multiple of the other"
        yield Fault(message=message, key="parallelism.tp", expected=f"a divisor or a multiple of {model.query_groups}")
    elif model.ffn % tp:  # each rank has the same share of the columns of its matrices
        message = f"an FFN size of {model.ffn} cannot be divided by tp = {tp}"
        yield Fault(message=message, key="model.ffn", expected=f"a multiple of {tp}")


def _experts(model: Model, parallelism: Parallelism, gpus: int) -> Iterator[Fault]:
    pp, ep, etp = parallelism.pp, parallelism.ep, parallelism.etp
    if model.experts % ep:
        message = f"{model.experts} experts cannot be divided by ep = {ep}"
        yield Fault(message=message, key="parallelism.ep", expected=f"a divisor of {model.experts}")
    elif ep * etp > 1 and gpus % pp == 0 and gpus % (pp * ep * etp):
        message = f"{counted(gpus, 'GPU')} cannot be divided by pp x ep x etp = {pp} x {ep} x {etp} = {pp * ep * etp}"
        yield Fault(message=message, key="parallelism.ep", expected=f"pp x ep x etp that divides {gpus}")


def node_faults(gpus: int, gpus_per_node: int | None) -> Iterator[Fault]:
    """GPUs that fill some nodes and a part of one more."""
    if gpus_per_node and gpus > gpus_per_node and gpus % gpus_per_node:
        message = f"{gpus} GPUs are not whole nodes of {gpus_per_node}"
        yield Fault(message=message, key="workload.gpus", expected=f"a multiple of {gpus_per_node}")
