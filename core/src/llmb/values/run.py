"""One run with its target: a workload spec with every list expanded and every default filled in."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import attrs

from llmb.values.environment import Image
from llmb.values.errors import Fault, RecipeError
from llmb.values.frozen import FrozenMap
from llmb.values.job import Job, Mount, Phase
from llmb.values.model import Accelerator, FlopFormula, Model, Parallelism
from llmb.values.profile_and_telemetry import Profile, TelemetrySettings
from llmb.values.recipe import Baseline, MfuSource, Window
from llmb.values.rules.nvlink_domains import nodes_per_domain
from llmb.values.types.check_types import typed_fields
from llmb.values.types.numbers import NonNegativeInt, PositiveFloat, PositiveInt
from llmb.values.types.words_and_addresses import AbsolutePath, VariableName

OptionsT = TypeVar("OptionsT")  # the attrs class of a plugin's own options


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Paths:
    """Paths on the target: the run's directory, and the cache that all runs of a work directory share."""

    run: str
    cache: str


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Run(Generic[OptionsT]):
    """A run as a framework sees it: without scheduler and target.

    ``framework`` is the name of the framework plugin, or the path of the file that declares it. ``id`` and
    ``paths.run`` are empty until the run is planned or started. ``architecture`` is the model to train, and
    ``published_architecture`` the recipe's own; both are None if the recipe states none. FLOPs then come from
    ``flops_per_token``, or are unknown if that is None too. ``settings`` is the framework's part of the recipe,
    ``options`` the spec's [framework] table as the plugin's own class. ``baseline`` is None if nothing is published. It
    does not apply if the run differs from the published configuration in the keys of ``differences``. ``overrides``
    are the keys of the spec with another value than the recipe, whether they affect what is measured or not.
    """

    id: str
    name: str
    recipe: str
    framework: str
    release: str
    gpu_type: str
    dtype: str
    gpus: PositiveInt
    variant: str | None = None
    gpus_per_node: PositiveInt
    steps: PositiveInt
    repeat: PositiveInt = 1
    architecture: Model | None
    published_architecture: Model | None
    seq_len: PositiveInt
    parallelism: Parallelism
    flop_formula: FlopFormula | None = None
    flops_per_token: PositiveFloat | None = None
    mfu_from: MfuSource
    window: Window
    tolerance: PositiveFloat
    proxy: bool
    recompute_layers: NonNegativeInt = 0
    offload_layers: NonNegativeInt = 0
    cuda_graphs: bool = False
    image: Image | None
    time_limit_s: PositiveInt
    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    mounts: tuple[Mount, ...] = ()
    profile: Profile | None = None
    telemetry: TelemetrySettings | None = None
    settings: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    options: OptionsT
    paths: Paths
    accelerator: Accelerator
    baseline: Baseline | None = None
    differences: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()

    @property
    def model(self) -> Model:
        """The model to train. Raise RecipeError if the recipe states no architecture."""
        return _known_model(self.architecture, self.recipe)

    @property
    def published_model(self) -> Model:
        """The recipe's own model. Raise RecipeError if the recipe states no architecture."""
        return _known_model(self.published_architecture, self.recipe)

    @property
    def nodes(self) -> int:
        """The number of nodes that the GPUs fill."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def domain_nodes(self) -> int | None:
        """The number of nodes at a time in one NVLink domain, or None if no domain is wider than a node."""
        return nodes_per_domain(self.nodes, self.gpus_per_node, self.accelerator.domain_gpus)

    def job(
        self,
        phases: tuple[Phase, ...],
        *,
        env: Mapping[str, str] = FrozenMap(),
        mounts: tuple[Mount, ...] = (),
        files: Mapping[str, str] = FrozenMap(),
        mpi: str | None = None,
        mpi_optional: bool = False,
    ) -> Job:
        """Return the run's job with these phases and with one task for each GPU. On CPUs, tasks need no GPU."""
        return Job(
            id=self.id,
            directory=self.paths.run,
            phases=phases,
            nodes=self.nodes,
            tasks_per_node=self.gpus_per_node,
            gpus_per_node=0 if self.gpu_type == "cpu" else self.gpus_per_node,
            domain_nodes=self.domain_nodes,
            mpi=mpi,
            mpi_optional=mpi_optional,
            env=env,
            mounts=mounts,
            files=files,
            time_limit_s=self.time_limit_s,
        )


def _known_model(model: Model | None, recipe: str) -> Model:
    if model is None:
        raise RecipeError(
            Fault(message=f"{recipe} has no [model], which {recipe.partition('/')[0]} needs", key="model")
        )
    return model


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Target(Generic[OptionsT]):
    """The place of a run. ``host`` is None for this machine; ``options`` is the scheduler plugin's own class.

    With ``shared``, the work directory may belong to another user, and a group of the user may write to it. At most
    ``max_jobs`` runs of one sweep are pending or running here at a time. None means no limit.

    ``gpu_types`` are the GPU types of the runs. ``uses_images`` is False if no run has an image, so that a probe need
    not check for container engines. ``gpus_per_node`` is the run's value: that of [target], else that of the GPU type,
    and at most the run's number of GPUs. It is None without a run, as for ``llmb doctor``. Core adds ``env``,
    ``mounts`` and ``secrets`` to every job on the target. ``facts`` are the lines that the scheduler's probe printed;
    they are empty in a dry run, which starts nothing.
    """

    scheduler: str
    name: str | None = None
    host: str | None = None
    workdir: AbsolutePath
    shared: bool = False
    max_jobs: PositiveInt | None = None
    options: OptionsT
    gpu_types: tuple[str, ...] = ()
    uses_images: bool = True
    gpus_per_node: PositiveInt | None = None
    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    mounts: tuple[Mount, ...] = ()
    secrets: tuple[VariableName, ...] = ()
    facts: Mapping[str, str] = attrs.field(factory=FrozenMap)

    def paths(self, run_id: str) -> Paths:
        """Return the paths of a run under the work directory."""
        return Paths(run=f"{self.workdir}/runs/{run_id}", cache=self.cache)

    @property
    def cache(self) -> str:
        """The folder that all runs of the work directory share."""
        return f"{self.workdir}/cache"
