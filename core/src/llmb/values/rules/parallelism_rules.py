"""Checks of a model's division over GPUs that hold for every framework.

Recipes and workload specs follow the same rules. Each function yields all errors, with the keys of a workload spec
(``workload.gpus``, ``parallelism.tp``, ``model.layers``).
"""

import re
from collections.abc import Callable, Iterator

from llmb.values.errors import Fault
from llmb.values.model import Model, Parallelism
from llmb.values.texts.error_text import counted, not_divisible


def check_parallelism(model: Model | None, parallelism: Parallelism, gpus: int) -> Iterator[Fault]:
    """Yield the errors of dividing this model and batch over this many GPUs.

    ``model`` is None for a recipe without an architecture. Expert parallelism may share its ranks with data
    parallelism, so it must divide the GPUs, and does not multiply with tp.
    """
    for _keys, check in DIVISION_CHECKS:
        yield from check(model, parallelism, gpus)


def check_nodes(gpus: int, gpus_per_node: int) -> Iterator[Fault]:
    """Yield an error if the GPUs fill some nodes and a part of another. A part of one node is allowed."""
    if gpus > gpus_per_node and gpus % gpus_per_node:
        message = f"{gpus} GPUs do not fill nodes of {gpus_per_node}"
        yield Fault(message=message, key="workload.gpus", expected=f"a multiple of {gpus_per_node}")


def _check_ranks(_model: Model | None, parallelism: Parallelism, gpus: int) -> Iterator[Fault]:
    tp, pp, cp = parallelism.tp, parallelism.pp, parallelism.cp
    if gpus % (tp * pp * cp):
        message = not_divisible(gpus, "GPU", f"tp x pp x cp = {tp} x {pp} x {cp} = {tp * pp * cp}")
        yield Fault(message=message, key="workload.gpus", expected=f"a multiple of {tp * pp * cp}")
    else:
        yield from _check_batch(parallelism, gpus)


def _check_shards(_model: Model | None, parallelism: Parallelism, gpus: int) -> Iterator[Fault]:
    if gpus % parallelism.fsdp:
        message = not_divisible(gpus, "GPU", f"fsdp = {parallelism.fsdp}")
        yield Fault(message=message, key="parallelism.fsdp", expected=f"a divisor of {gpus}")


def _check_batch(parallelism: Parallelism, gpus: int) -> Iterator[Fault]:
    micro, dp = parallelism.micro_batch_size, parallelism.data_parallel(gpus)
    if parallelism.global_batch_size % (micro * dp):
        message = (
            f"global batch {parallelism.global_batch_size} is not divisible by "
            f"micro batch x data parallel = {micro} x {dp} = {micro * dp}"
        )
        key = "parallelism.global_batch_size"
        yield Fault(message=message, key=key, expected=f"a multiple of {micro * dp}")


def _check_pipeline(model: Model | None, parallelism: Parallelism, _gpus: int) -> Iterator[Fault]:
    pp, vp = parallelism.pp, parallelism.vp or 1
    if vp > 1 and pp == 1:
        message = f"{vp} interleaved stages need a pipeline, but pp is 1"
        yield Fault(message=message, key="parallelism.vp", expected="1, or pp above 1")
    if model is None:
        return
    if parallelism.pipeline_layout is not None:
        yield from _check_layout(model, parallelism.pipeline_layout, pp * vp)
        return
    if model.uneven_stages:
        if pp * vp > model.layers:
            message = f"{counted(model.layers, 'layer')} for pp x vp = {pp} x {vp} = {pp * vp} stages"
            yield Fault(message=message, key="parallelism.pp", expected=f"at most {counted(model.layers, 'stage')}")
        return
    extra = 2 if model.embedding_and_loss_as_layers else 0
    if pp > 1 and (model.layers + extra) % (pp * vp):
        stages = f"pp x vp = {pp} x {vp} = {pp * vp}"
        message = not_divisible(model.layers, "layer", stages)
        if extra:
            message = f"{model.layers} layers + 2 (embedding and loss) are not divisible by {stages}"
        expected = f"a multiple of {pp * vp}" + (", minus 2" if extra else "")
        yield Fault(message=message, key="model.layers", expected=expected)


def _check_layout(model: Model, layout: str, stages: int) -> Iterator[Fault]:
    """Yield the errors of an uneven division of the layers among pipeline stages."""
    key, listed = "parallelism.pipeline_layout", layout_stages(layout)
    if set("".join(listed)) - set("EtmL"):
        yield Fault(message=f'invalid value "{layout}"', key=key, expected='stages such as "Et*3|(tt|)*2mL"')
        return
    if len(listed) != stages:
        yield Fault(message=counted(len(listed), "stage"), key=key, expected=f"{counted(stages, 'stage')}, pp x vp")
    if (layers := "".join(listed).count("t")) != model.layers:
        yield Fault(
            message=counted(layers, "layer"), key=key, expected=f"{counted(model.layers, 'layer')}, as the model has"
        )
    if ("m" in layout) != bool(model.mtp_depth):
        has, needs = ("has", "without") if "m" in layout else ("lacks", "with")
        message = f"the layout {has} multi-token prediction (m), but model.mtp_depth is {model.mtp_depth}"
        yield Fault(message=message, key=key, expected=f"a layout {needs} m")


def layout_stages(layout: str) -> list[str]:
    """Return the stages of a pipeline layout with all repetitions written out: "Et*2|(t|)*2L" is Ett, t, t, L.

    A number of more than three digits, which would fill the memory, is left as it is.
    """
    without_groups = re.sub(r"\(([^()]*)\)\*(\d{1,3})(?!\d)", lambda match: match[1] * int(match[2]), layout)
    return re.sub(r"(\w)\*(\d{1,3})(?!\d)", lambda match: match[1] * int(match[2]), without_groups).split("|")


def _check_tensor(model: Model | None, parallelism: Parallelism, _gpus: int) -> Iterator[Fault]:
    tp = parallelism.tp
    if model is None:
        return
    if model.heads % tp:
        message = not_divisible(model.heads, "head", f"tp = {tp}")
        yield Fault(message=message, key="parallelism.tp", expected=f"a divisor of {model.heads}")
    # With more ranks than query groups, each group is copied to the same number of ranks.
    elif model.query_groups % tp and tp % model.query_groups:
        message = f"neither {model.query_groups} query groups nor tp = {tp} is a multiple of the other"
        yield Fault(message=message, key="parallelism.tp", expected=f"a divisor or a multiple of {model.query_groups}")
    elif model.ffn % tp:  # each rank has the same share of the columns of its matrices
        message = f"FFN size {model.ffn} is not divisible by tp = {tp}"
        yield Fault(message=message, key="model.ffn", expected=f"a multiple of {tp}")


def _check_experts(model: Model | None, parallelism: Parallelism, gpus: int) -> Iterator[Fault]:
    pp, ep, etp = parallelism.pp, parallelism.ep, parallelism.etp
    if model is not None and model.experts % ep:
        message = not_divisible(model.experts, "expert", f"ep = {ep}")
        yield Fault(message=message, key="parallelism.ep", expected=f"a divisor of {model.experts}")
    elif ep * etp > 1 and gpus % pp == 0 and gpus % (pp * ep * etp):
        message = not_divisible(gpus, "GPU", f"pp x ep x etp = {pp} x {ep} x {etp} = {pp * ep * etp}")
        yield Fault(message=message, key="parallelism.ep", expected=f"pp x ep x etp that divides {gpus}")


DIVISION_CHECKS: tuple[tuple[tuple[str, ...], Callable[[Model | None, Parallelism, int], Iterator[Fault]]], ...] = (
    (("model.heads", "model.query_groups", "model.ffn", "parallelism.tp"), _check_tensor),
    (("model.layers", "parallelism.pp", "parallelism.vp"), _check_pipeline),
    (
        (
            *("workload.gpus", "parallelism.tp", "parallelism.pp", "parallelism.cp"),
            *("parallelism.micro_batch_size", "parallelism.global_batch_size"),
        ),
        _check_ranks,
    ),
    (("workload.gpus", "parallelism.fsdp"), _check_shards),
    (("workload.gpus", "model.experts", "parallelism.pp", "parallelism.ep", "parallelism.etp"), _check_experts),
)
"""The checks of `check_parallelism`, each with the keys that it reads. Those of the model alone come first."""
