"""Possible parallelism: each published combination, and one error for each rule."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from llmb.values.errors import Fault
from llmb.values.model import Model, Parallelism
from llmb.values.rules.model_rules import check_model
from llmb.values.rules.parallelism_rules import check_nodes, check_parallelism

LLAMA_70B = Model(layers=80, hidden=8192, ffn=28672, heads=64, query_groups=8, vocab=128256, seq_len=8192)
LLAMA_405B = Model(layers=126, hidden=16384, ffn=53248, heads=128, query_groups=8, vocab=128256, seq_len=8192)
BRIDGE_405B = attrs.evolve(LLAMA_405B, embedding_and_loss_as_layers=True)
GROK = Model(
    layers=64, hidden=6144, ffn=32768, heads=48, query_groups=8, vocab=128256, seq_len=8192, experts=8, top_k=2
)  # fmt: skip
NEMOTRON = Model(
    layers=96, hidden=18432, ffn=73728, heads=96, query_groups=8, vocab=256000, seq_len=4096, gated=False
)  # fmt: skip


def errors_of(model: Model, parallelism: Parallelism, gpus: int, gpus_per_node: int = 8) -> list[Fault]:
    return [*check_parallelism(model, parallelism, gpus), *check_nodes(gpus, gpus_per_node)]


def dividing(**degrees: Any) -> Parallelism:
    return Parallelism(**{"global_batch_size": 128} | degrees)


PUBLISHED = [
    (LLAMA_70B, dividing(tp=4, pp=4, vp=5, cp=2), 64),
    (LLAMA_70B, dividing(tp=4, pp=4, vp=5, cp=2, global_batch_size=4096), 2048),
    (LLAMA_70B, dividing(fsdp=64, micro_batch_size=2), 64),
    (NEMOTRON, dividing(tp=8, pp=8, vp=12, global_batch_size=32), 128),
    (attrs.evolve(LLAMA_405B, query_groups=16), dividing(tp=8, pp=9, vp=7, cp=2, global_batch_size=252), 576),
    (BRIDGE_405B, dividing(tp=4, pp=8, vp=8, cp=2, global_batch_size=64), 128),
    (BRIDGE_405B, dividing(tp=2, fsdp=64, global_batch_size=64), 128),
    (attrs.evolve(LLAMA_405B, uneven_stages=True), dividing(pp=4, vp=2), 512),
    (attrs.evolve(GROK, layers=2), dividing(tp=4, ep=2, global_batch_size=1024), 8),
    (attrs.evolve(GROK, layers=4), dividing(tp=4, ep=4, global_batch_size=1024), 16),
    (attrs.evolve(GROK, layers=16), dividing(tp=4, pp=2, vp=8, cp=2, ep=8, global_batch_size=1024), 128),
    (GROK, dividing(tp=4, pp=8, vp=8, cp=2, ep=8, global_batch_size=4096), 2048),
]


@pytest.mark.parametrize(("model", "parallelism", "gpus"), PUBLISHED)
def test_every_published_division_is_possible(model: Model, parallelism: Parallelism, gpus: int) -> None:
    assert [*check_model(model), *errors_of(model, parallelism, gpus)] == []


@pytest.mark.parametrize(
    ("model", "degrees", "gpus", "key", "message"),
    [
        (LLAMA_70B, {"tp": 4, "pp": 4, "cp": 2}, 72, "workload.gpus",
         "72 GPUs are not divisible by tp x pp x cp = 4 x 4 x 2 = 32"),
        (LLAMA_70B, {"global_batch_size": 100}, 64, "parallelism.global_batch_size",
         "global batch 100 is not divisible by micro batch x data parallel = 1 x 64 = 64"),
        (LLAMA_70B, {"micro_batch_size": 3, "tp": 8}, 64, "parallelism.global_batch_size",
         "global batch 128 is not divisible by micro batch x data parallel = 3 x 8 = 24"),
        (LLAMA_70B, {"pp": 4, "vp": 6}, 64, "model.layers", "80 layers are not divisible by pp x vp = 4 x 6 = 24"),
        (BRIDGE_405B, {"pp": 9}, 576, "model.layers",
         "126 layers + 2 (embedding and loss) are not divisible by pp x vp = 9 x 1 = 9"),
        (LLAMA_405B, {"pp": 8}, 64, "model.layers", "126 layers are not divisible by pp x vp = 8 x 1 = 8"),
        (attrs.evolve(GROK, uneven_stages=True), {"pp": 8, "vp": 9}, 64, "parallelism.pp",
         "64 layers for pp x vp = 8 x 9 = 72 stages"),
        (LLAMA_70B, {"vp": 5}, 64, "parallelism.vp", "5 interleaved stages need a pipeline, but pp is 1"),
        (GROK, {"tp": 32}, 64, "parallelism.tp", "48 heads are not divisible by tp = 32"),
        (GROK, {"tp": 12, "global_batch_size": 8}, 96, "parallelism.tp",
         "neither 8 query groups nor tp = 12 is a multiple of the other"),
        (GROK, {"ep": 16}, 64, "parallelism.ep", "8 experts are not divisible by ep = 16"),
        (LLAMA_70B, {"ep": 2}, 64, "parallelism.ep", "1 expert is not divisible by ep = 2"),
        (GROK, {"pp": 2, "ep": 8}, 8, "parallelism.ep",
         "8 GPUs are not divisible by pp x ep x etp = 2 x 8 x 1 = 16"),
        (attrs.evolve(LLAMA_70B, ffn=28674), {"tp": 4, "global_batch_size": 64}, 64, "model.ffn",
         "FFN size 28674 is not divisible by tp = 4"),
        (LLAMA_70B, {"fsdp": 48}, 64, "parallelism.fsdp", "64 GPUs are not divisible by fsdp = 48"),
        (LLAMA_70B, {"global_batch_size": 132}, 12, "workload.gpus", "12 GPUs do not fill nodes of 8"),
    ],
)  # fmt: skip
def test_an_impossible_division_is_one_error_that_shows_the_numbers(
    model: Model, degrees: dict[str, int], gpus: int, key: str, message: str
) -> None:
    [error] = errors_of(model, dividing(**degrees), gpus)
    assert (error.key, error.message) == (key, message)
    assert error.expected


def test_query_groups_may_be_copied_to_more_tensor_ranks_than_there_are() -> None:
    assert errors_of(LLAMA_70B, dividing(tp=16), 64) == []


def test_part_of_one_node_is_possible() -> None:
    assert errors_of(LLAMA_70B, dividing(), 4) == []


DEEPSEEK = attrs.evolve(LLAMA_70B, layers=61, experts=256, top_k=8, mtp_depth=1)


def test_a_layout_divides_layers_that_do_not_divide_evenly() -> None:
    uneven = dividing(pp=8, vp=4, pipeline_layout="Et|(tt|)*30mL", global_batch_size=1024)
    assert errors_of(DEEPSEEK, uneven, 1024) == []
    [error] = errors_of(DEEPSEEK, attrs.evolve(uneven, pipeline_layout=None), 1024)
    assert error.key == "model.layers"


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("Et*61|(|)*14mL", "16 stages"),
        ("Et*30|(|)*30mL", "30 layers"),
        ("Et*61|(|)*30L", "the layout lacks multi-token prediction (m), but model.mtp_depth is 1"),
        ("Et*61|(|)*29xL", 'invalid value "Et*61|(|)*29xL"'),
        ("Et*61|(|)*99999999999mL", 'invalid value "Et*61|(|)*99999999999mL"'),
        ("Et*99999999999|(|)*30mL", 'invalid value "Et*99999999999|(|)*30mL"'),
    ],
)
def test_a_layout_has_all_layers_and_stages(layout: str, message: str) -> None:
    [error] = errors_of(DEEPSEEK, dividing(pp=8, vp=4, pipeline_layout=layout), 64)
    assert (error.key, error.message) == ("parallelism.pipeline_layout", message)


def test_other_stages_drop_the_layout() -> None:
    uneven = dividing(pp=8, vp=4, pipeline_layout="Et|(tt|)*30mL")
    assert uneven.with_degrees({"tp": 2}).pipeline_layout == uneven.pipeline_layout
    assert uneven.with_degrees({"pp": 4, "vp": 8}).pipeline_layout is None


def test_the_head_size_may_differ_from_hidden_by_heads() -> None:
    assert list(check_model(attrs.evolve(LLAMA_70B, hidden=8191, head_size=128))) == []


def test_all_errors_are_found_together() -> None:
    parallelism = dividing(tp=3, pp=7, ep=2, fsdp=5, vp=2)
    keys = {error.key for error in errors_of(LLAMA_70B, parallelism, 64)}
    assert keys == {"workload.gpus", "model.layers", "parallelism.tp", "parallelism.ep", "parallelism.fsdp"}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"query_groups": 7}, "model.query_groups"),
        ({"top_k": 2}, "model.top_k"),
        ({"hidden": 8191}, "model.hidden"),
        ({"full_attention_every": 2}, "model.full_attention_every"),
        ({"expert_ffn": 1024}, "model.expert_ffn"),
        ({"experts": 8, "dense_layers": 81}, "model.dense_layers"),
        ({"mtp_pattern": "*E"}, "model.mtp_pattern"),
        ({"layer_pattern": "*-" * 39}, "model.layer_pattern"),
        ({"layer_pattern": "*x" * 40}, "model.layer_pattern"),
        ({"layer_pattern": "*M" * 40}, "model.mamba"),
        ({"layer_pattern": "*E" * 40}, "model.experts"),
        ({"layer_pattern": "*-" * 40, "mtp_depth": 1}, "model.mtp_pattern"),
    ],
)
def test_an_impossible_model_is_an_error(changes: dict[str, Any], key: str) -> None:
    assert [error.key for error in check_model(attrs.evolve(LLAMA_70B, **changes))] == [key]
