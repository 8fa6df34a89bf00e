"""Keys of [framework] in recipes of Megatron-Bridge."""

from collections.abc import Mapping
from typing import Any

import attrs

from llmb import FrozenMap, Nsys, PositiveFloat, PositiveInt, Repository


@attrs.frozen(kw_only=True)
class EnvRule:
    """Keys of [framework.env_rules.NAME]."""

    env: Mapping[str, str]
    """Environment variables. `{ep}` in one is the value of that name."""
    when: Mapping[str, str | int | bool | tuple[str | int, ...]] = attrs.field(factory=FrozenMap)
    """Conditions by the names of values: a value, a list of values, or a comparison such as `"> 8"`."""


@attrs.frozen(kw_only=True)
class Preparation:
    """Keys of [framework.preparations.NAME]."""

    kind: str
    """Name of the result in messages."""
    command: tuple[str, ...]
    """Command that writes the folder `{result}`."""
    result: str
    """Final path of that folder."""
    complete: tuple[str, ...]
    """Files in the folder that exist and are not empty once it is complete."""
    time_limit_s: PositiveInt
    """Time limit of the job in seconds."""
    space_gb: PositiveFloat
    """Disk space of the result in GB."""
    env: Mapping[str, str]
    """Environment variables of the job."""
    files: tuple[str, ...] = ()
    """Files of the plugin that the job reads."""


@attrs.frozen(kw_only=True)
class Download:
    """Keys of [framework.cupti] and [framework.nsys_release]."""

    url: str
    """Address of the archive."""
    path: str
    """Path in the container that the downloaded file or folder replaces."""
    space_gb: PositiveFloat
    """Disk space in GB."""


@attrs.frozen(kw_only=True)
class TokenSettings:
    """Keys of [framework.hf_token]."""

    required: bool = False
    """True if the run needs HF_TOKEN, for a gated repository."""
    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    """Environment variables of a run with HF_TOKEN."""


@attrs.frozen(kw_only=True)
class MegatronBridgeSettings:
    """Keys of [framework]."""

    command: tuple[str, ...]
    """Command of the training, without the arguments."""
    env: Mapping[str, str]
    """Environment variables of the training."""
    files: tuple[str, ...]
    """Files of the plugin that the training reads."""
    arguments: tuple[str, ...] = ()
    """Arguments of the script before those of the run."""
    argument_names: Mapping[str, str] = attrs.field(factory=FrozenMap)
    """Argument of the script for each value of the run."""
    passed: tuple[str, ...] | None = None
    """Values that the publisher's launcher passes at this point. Without this key, all are passed."""
    overrides: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    """Overrides of the configuration, after the arguments."""
    size_keys: Mapping[str, tuple[str, ...]] = attrs.field(factory=FrozenMap)
    """Keys of the configuration that a changed size of the model sets."""
    config: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    """Tables of the configuration file of release 25.10."""
    config_file: str | None = None
    """Name of the configuration file in the run's folder."""
    config_tables: tuple[str, ...] = ()
    """Tables of the configuration that an override can name."""
    compute_dtype: str | None = None
    """Data type, as the script names it."""
    fp8_recipe: str | None = None
    """Recipe of FP8, as the script names it."""
    fsdp: bool = False
    """True if the script itself enables FSDP at this point."""
    a2a_overlap: bool = False
    """True if the script overlaps the all-to-all of experts at this point."""
    cuda_graph_impl: str | None = None
    """Implementation of CUDA graphs."""
    cuda_graph_scope: tuple[str, ...] = ()
    """Parts of the model in CUDA graphs."""
    recompute_modules: tuple[str, ...] = ()
    """Modules that are recomputed."""
    dispatcher: str | None = None
    """Dispatcher of tokens to experts."""
    whole_query_groups: bool = False
    """True if tp has to divide the query groups."""
    env_rules: Mapping[str, EnvRule] = attrs.field(factory=FrozenMap)
    """Environment variables that depend on the run, by the name of the rule."""
    hf_token: TokenSettings | None = None
    """Use of HF_TOKEN."""
    hub_model: str | None = None
    """Repository whose configuration the plugin writes."""
    hub_config: Mapping[str, Any] | None = None
    """Public values of this configuration."""
    hub_downloads: tuple[str, ...] = ()
    """Repositories whose configurations and tokenizers are downloaded before the run."""
    preparations: Mapping[str, Preparation] = attrs.field(factory=FrozenMap)
    """Shared tasks before the run, by name."""
    folders: Mapping[str, str] = attrs.field(factory=FrozenMap)
    """Paths by the names that commands use."""
    repository: Repository | None = None
    """Publisher's scripts at one commit."""
    scripts: str | None = None
    """Folder of the scripts in this repository."""
    nsys: Nsys | None = None
    """Command of nsys for `[profile] tool = "nsys"`."""
    nsys_release: Download | None = None
    """Release of nsys that replaces the image's."""
    cupti: Download | None = None
    """CUPTI library that replaces the image's."""
    mpi: str | None = None
    """Type of MPI with which the scheduler starts the ranks."""
    lock: str | None = None
    """Lock file of the Python environment, if there is no image. Without either, you prepare the environment."""
    python: str | None = None
    """Version of Python in this environment."""
    space_gb: PositiveFloat | None = None
    """Disk space of this environment in GB."""
