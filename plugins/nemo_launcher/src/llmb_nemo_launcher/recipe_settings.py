"""Keys of [framework] in recipes of NeMo Launcher."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from llmb import FrozenMap, Nsys, PositiveFloat, PositiveInt, Repository


@attrs.frozen(kw_only=True)
class TokenizerSettings:
    """Keys of [framework.tokenizer]."""

    kind: Literal["gated", "open", "published"]
    """Access: "gated" needs HF_TOKEN, and "published" is a copy from the publisher's repository."""
    repository: str
    """Repository of the tokenizer."""
    files: tuple[str, ...]
    """Files of the tokenizer."""
    folder: str | None = None
    """Folder of these files in the publisher's repository."""
    config: Mapping[str, Any] | None = None
    """Content of tokenizer_config.json, if the repository has none."""


@attrs.frozen(kw_only=True)
class DatasetSettings:
    """Keys of [framework.dataset]."""

    name: str
    """First part of the names of the files."""
    config: str
    """Configuration of the launcher that creates the data."""
    url: str
    """Address of the folder with the shards."""
    shards: tuple[int, ...]
    """Numbers of the shards."""
    space_gb: PositiveFloat
    """Disk space of all shards in GB."""
    time_limit_s: PositiveInt
    """Time limit of each job in seconds."""


@attrs.frozen(kw_only=True)
class NcclTraceSettings:
    """Keys of [framework.nccl_trace]."""

    env: Mapping[str, str]
    """Environment variables of a run that traces NCCL."""


@attrs.frozen(kw_only=True)
class NeMoLauncherSettings:
    """Keys of [framework]."""

    command: tuple[str, ...]
    """Command of the training, without the arguments."""
    config: Mapping[str, Any]
    """Configuration of NeMo, which Hydra reads."""
    config_name: str
    """Name of the file with this configuration, without `.yaml`."""
    model: str
    """Name of the model in the paths of reports."""
    size: str
    """Size of the model in the paths of reports."""
    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    """Environment variables of the training."""
    flags: Mapping[Literal["fp8", "tp", "pp"], tuple[str, ...]] = attrs.field(factory=FrozenMap)
    """Keys of the configuration that are true with FP8, with tp > 1 and with pp > 1, and otherwise false."""
    step_timing_buffer: PositiveInt | None = None
    """Number of steps that a printed step time is the mean of."""
    tokenizer: TokenizerSettings | None = None
    """The tokenizer that llmb prepares."""
    dataset: DatasetSettings | None = None
    """The data that llmb prepares."""
    repository: Repository | None = None
    """Publisher's repository at one commit, if the tokenizer is in it."""
    nsys: Nsys | None = None
    """Command of nsys for `[profile] tool = "nsys"`."""
    nccl_trace: NcclTraceSettings | None = None
    """Settings for `[profile] tool = "nccl-trace"`."""
    mpi: str | None = None
    """Type of MPI with which the scheduler starts the ranks."""
