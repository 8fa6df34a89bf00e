"""The tables and keys of a workload spec: one attrs class for each table with keys of the core."""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import attrs

from llmb.values.frozen import FrozenMap
from llmb.values.profile_and_telemetry import Profile, TelemetrySettings
from llmb.values.recipe import Window
from llmb.values.texts.nearest_name import nearest_name
from llmb.values.types.check_types import value_type
from llmb.values.types.durations import Duration
from llmb.values.types.numbers import Fraction, NonNegativeInt, PositiveInt
from llmb.values.types.value_type import InvalidValueError, ValueType
from llmb.values.types.words_and_addresses import ImageAddress, NonEmptyStr, VariableName

EXPECTED_WINDOW = '"last" or a list of two integers'


def _convert_window(value: Any) -> Window:
    """Return a measuring window. The error of another value such as ``"35:44"`` shows its two numbers as a window."""
    try:
        return value_type(Window).convert(value)  # type: ignore[no-any-return]
    except InvalidValueError:
        numbers = [int(each) for each in re.findall(r"\d{1,99}", value)] if isinstance(value, str) else []
        example = numbers if len(numbers) == 2 else [35, 44]
        raise InvalidValueError.of(value, f"{EXPECTED_WINDOW} such as {example}") from None


@attrs.frozen(kw_only=True)
class WorkloadTable:
    """[workload]: the recipe, the GPUs and the number of runs. ``steps`` defaults to the recipe's number."""

    recipe: str
    """An address from `llmb recipes`: `NAME` means the newest release, `NAME@25.12` the last fix of that
    release, `NAME@25.12.01` this fix. Or the path of a declared framework, relative to the spec: `./mylm.toml`,
    `./mylm.toml#RECIPE`. Example: ``"nemo_launcher/grok1-314b"``
    """
    gpu_type: str
    """A GPU type of the recipe. Another one needs `parallelism.global_batch_size`. Example: ``"h100"``"""
    dtype: str
    """A dtype of the recipe that the GPU supports. Example: ``"fp8"``"""
    gpus: PositiveInt
    """GPUs of all nodes: a part of one node, or complete nodes. With `cpu`: processes. Example: ``1024``"""
    variant: str | None = None
    """One of several published configurations of this GPU type, dtype and number of GPUs. Default: the
    publisher's default. Example: ``"mxfp8"``
    """
    steps: PositiveInt | None = None
    """Training steps. Default: the recipe's. Example: ``100``"""
    repeats: PositiveInt | None = None
    """Number of runs with the same values. Each has its own verdict, and all together have one. Default: 1.
    Example: ``3``
    """
    image: ImageAddress | None = None
    """Container image instead of the recipe's image or virtual environment: an image in a registry, or the path of a
    squashfs file on the target, which is not imported. Default: the recipe's. Example: ``"nvcr.io/nvidia/nemo:24.12"``
    """
    time_limit: Duration | None = None
    """Time after which the scheduler ends the job. Default: the recipe's. Example: ``"30m"``"""


@attrs.frozen(kw_only=True)
class ParallelismTable:
    """[parallelism]: each key overrides the recipe's value. 1 is off, for ``vp`` too."""

    tp: PositiveInt | None = None
    """Tensor parallelism. Default: the recipe's. Example: ``8``"""
    pp: PositiveInt | None = None
    """Pipeline parallelism. Default: the recipe's. Example: ``4``"""
    vp: PositiveInt | None = None
    """Interleaved stages of each pipeline rank. Default: the recipe's. Example: ``4``"""
    cp: PositiveInt | None = None
    """Context parallelism. Default: the recipe's. Example: ``1``"""
    ep: PositiveInt | None = None
    """Expert parallelism. Default: the recipe's. Example: ``4``"""
    etp: PositiveInt | None = None
    """Tensor parallelism of experts. Default: the recipe's. Example: ``2``"""
    fsdp: PositiveInt | None = None
    """Number of shards. Default: the recipe's. Example: ``64``"""
    micro_batch_size: PositiveInt | None = None
    """Sequences in one pass of a replica. Default: the recipe's. Example: ``2``"""
    global_batch_size: PositiveInt | None = None
    """Sequences in one step. Default: the recipe's. Example: ``2048``"""
    pipeline_layout: NonEmptyStr | None = None
    """Layers of each pipeline stage, if they are not divided evenly: E (embedding), t (layer), m (multi-token
    prediction), L (loss). Default: the recipe's. Example: ``"Et*3|(tt|)*2L"``
    """


@attrs.frozen(kw_only=True)
class LatentAttentionTable:
    """[model.mla]: each key overrides the recipe's size of multi-head latent attention."""

    q_rank: PositiveInt | None = None
    """Width of the compressed queries. Default: the recipe's. Example: ``768``"""
    kv_rank: PositiveInt | None = None
    """Width of the compressed keys and values. Default: the recipe's. Example: ``256``"""
    head_size: PositiveInt | None = None
    """Elements of a key without position. Default: the recipe's. Example: ``64``"""
    rope_head_size: PositiveInt | None = None
    """Elements of a key with rotary position. Default: the recipe's. Example: ``32``"""
    value_head_size: PositiveInt | None = None
    """Elements of a value. Default: the recipe's. Example: ``64``"""


@attrs.frozen(kw_only=True)
class MambaTable:
    """[model.mamba]: each key overrides the recipe's size of the Mamba layers."""

    heads: PositiveInt | None = None
    """Heads. Default: the recipe's. Example: ``32``"""
    head_size: PositiveInt | None = None
    """Size of a head. Default: the recipe's. Example: ``64``"""
    groups: PositiveInt | None = None
    """Groups that share B and C. Default: the recipe's. Example: ``8``"""
    state: PositiveInt | None = None
    """State of a channel. Default: the recipe's. Example: ``128``"""


@attrs.frozen(kw_only=True)
class ModelTable:
    """[model]: each key overrides the recipe's value, for proxies."""

    layers: PositiveInt | None = None
    """Transformer layers. Default: the recipe's. Example: ``128``"""
    hidden: PositiveInt | None = None
    """Hidden size. Default: the recipe's. Example: ``3072``"""
    ffn: PositiveInt | None = None
    """Hidden size of the MLP. Default: the recipe's. Example: ``16384``"""
    heads: PositiveInt | None = None
    """Attention heads. Default: the recipe's. Example: ``64``"""
    query_groups: PositiveInt | None = None
    """Heads of keys and values. Default: the recipe's. Example: ``16``"""
    vocab: PositiveInt | None = None
    """Vocabulary. Default: the recipe's. Example: ``32000``"""
    seq_len: PositiveInt | None = None
    """Tokens in a sequence. Default: the recipe's. Example: ``4096``"""
    experts: PositiveInt | None = None
    """Experts of each layer. Default: the recipe's. Example: ``16``"""
    top_k: PositiveInt | None = None
    """Experts for each token. Default: the recipe's. Example: ``1``"""
    expert_ffn: PositiveInt | None = None
    """Hidden size of an expert. Default: the recipe's. Example: ``1024``"""
    shared_expert_ffn: NonNegativeInt | None = None
    """Hidden size of all shared experts together. Default: the recipe's. Example: ``1024``"""
    dense_layers: NonNegativeInt | None = None
    """First layers, which have no experts. Default: the recipe's. Example: ``1``"""
    latent_size: PositiveInt | None = None
    """Size of the vectors of routed experts. Default: the recipe's. Example: ``512``"""
    head_size: PositiveInt | None = None
    """Size of an attention head. Default: the recipe's. Example: ``64``"""
    sliding_window: PositiveInt | None = None
    """Tokens that a token attends to, itself included. Default: the recipe's. Example: ``256``"""
    full_attention_every: PositiveInt | None = None
    """Distance between layers without a sliding window. Default: the recipe's. Example: ``4``"""
    layer_pattern: NonEmptyStr | None = None
    """One letter for each layer of a hybrid: M (Mamba), * (attention), - (MLP) or E (experts). Default: the
    recipe's. Example: ``"MEM*"``
    """
    mtp_depth: NonNegativeInt | None = None
    """Additional tokens of multi-token prediction. Default: the recipe's. Example: ``0``"""
    mtp_pattern: NonEmptyStr | None = None
    """Layers of one depth of multi-token prediction in a hybrid. Default: the recipe's. Example: ``"*E"``"""
    mla: LatentAttentionTable | None = None
    """Sizes of multi-head latent attention: q_rank, kv_rank, head_size, rope_head_size and value_head_size.
    Default: the recipe's. Example: ``{ kv_rank = 256 }``
    """
    mamba: MambaTable | None = None
    """Sizes of the Mamba layers: heads, head_size, groups and state. Default: the recipe's.
    Example: ``{ state = 64 }``
    """


@attrs.frozen(kw_only=True)
class MeasureTable:
    """[measure]: the measuring window, and how far a step time may exceed the baseline, as a fraction."""

    window: Annotated[Window, ValueType(EXPECTED_WINDOW + " such as [35, 44]", _convert_window)] | None = None
    """The step time is that of the last step, or the mean of these steps, both included, in the numbers of the
    framework (some count from 0, others from 1). Default: the recipe's. Example: ``[35, 44]``
    """
    tolerance: Fraction | None = None
    """Limit of the verdict: pass if ratio + margin <= 1 + tolerance, fail if ratio - margin > 1 + tolerance.
    Default: 0.05. Example: ``0.03``
    """


@attrs.frozen(kw_only=True)
class TargetTable:
    """[target]: the keys that the core reads. The scheduler plugin reads the other keys."""

    scheduler: str
    """A plugin; `llmb plugins` lists the installed ones. Required here or in the table that `name` or `--target`
    names. Example: ``"slurm"``
    """
    name: str | None = None
    """A table of the targets file, whose keys are added to those of the spec. Example: ``"eos"``"""
    host: str | None = None
    """A host as ssh takes it. Default: this machine. Example: ``"me@eos-login:2222"``"""
    workdir: str | None = None
    """Directory of the runs and their shared files on that host; required with `host`. Default: `work` in
    `$LLMB_HOME`. Example: ``"/lustre/me/llmb"``
    """
    shared: bool = False
    """The work directory may belong to another user, and a group that you are in may write to it.
    Example: ``true``
    """
    max_jobs: PositiveInt | None = None
    """At most this many runs of this sweep are pending or running at a time on this target. The others are submitted
    only while a process follows them. Default: no limit. Example: ``16``
    """
    gpus_per_node: PositiveInt | None = None
    """GPUs of a node, such as 8 for H100 and 4 for GB200. Default: the GPU type's. Example: ``4``"""
    env: Mapping[str, str] = FrozenMap()
    """Environment variables of every job. Example: ``{ NCCL_IB_HCA = "mlx5" }``"""
    mounts: Mapping[str, str] = FrozenMap()
    """Mounts of every container, in the form of `[mounts]`. Example: ``{ "/opt/driver" = "/opt/driver:ro" }``"""
    secrets: tuple[VariableName, ...] = ()
    """Exported variables that every job gets, and that no record contains. Example: ``["HTTPS_PROXY"]``"""


@attrs.frozen(kw_only=True)
class SpecTables:
    """The valid values of one run's spec, without [framework] and [target], which plugins read too.

    ``parallelism`` and ``model`` have only the keys that the spec sets; ``mla`` and ``mamba`` are tables too.
    """

    workload: WorkloadTable
    parallelism: Mapping[str, Any]
    model: Mapping[str, Any]
    measure: MeasureTable
    profile: Profile | None
    telemetry: TelemetrySettings | None
    env: Mapping[str, str]
    mounts: Mapping[str, str]
    gpus_per_node: int | None


SWEPT_KEYS = ("recipe", "gpu_type", "dtype", "gpus", "variant")
"""The keys of [workload] that may be lists. Any other key is swept in [sweep]."""

TABLES: Mapping[str, Any] = {
    "workload": WorkloadTable,
    "parallelism": ParallelismTable,
    "model": ModelTable,
    "framework": None,
    "env": None,
    "mounts": None,
    "profile": Profile,
    "telemetry": TelemetrySettings,
    "measure": MeasureTable,
    "target": TargetTable,
}
"""The tables of one run's spec. Tables whose keys the core does not know have no class."""

TABLE_TEXTS: Mapping[str, str] = {
    "workload": "What to run: recipe, GPUs and number of runs.",
    "parallelism": "Division over GPUs. Each key overrides the recipe's value for this configuration; 1 is off.",
    "model": "Another model. Each key overrides the recipe's value; the run is then a proxy.",
    "framework": "Options of the framework.",
    "env": "Environment variables of the job, as strings. They override those of the recipe and of the target.",
    "mounts": "Paths on the node, each with its path in the container; `:ro` at the end makes a mount read-only.",
    "profile": "A capture of a profiling tool. The run has no verdict.",
    "telemetry": "Samples of the GPUs of each node.",
    "measure": "What to measure: the measuring window and the tolerance of the verdict.",
    "target": "Where to run. The keys that are not listed here belong to the scheduler.",
    "sweep": 'Lists of any other key, such as `"parallelism.tp" = [4, 8]`. Every combination runs.',
    "provenance": "How a recorded run was made. Ignored.",
}
"""Descriptions of the tables, for editors."""


def nearest_key(name: str, tables: Iterable[str] = ()) -> str | None:
    """Return the table or key that was probably meant by an unknown table: a key of that name first."""
    keys = dotted_keys()
    found = nearest_name(name, keys)
    return keys.get(name) or nearest_name(name, tables) or (keys[found] if found else None)


@functools.cache
def dotted_keys() -> Mapping[str, str]:
    """Return the keys of the core's tables with their tables, such as ``parallelism.tp``, by name."""
    return {field.name: f"{table}.{field.name}" for table, cls in TABLES.items() if cls for field in attrs.fields(cls)}
