"""One run: a workload spec with every list expanded and every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

import attrs

from llmb.values.frozen import FrozenMap, freeze
from llmb.values.job import Image, Mount
from llmb.values.model import Accelerator, FlopFormula, Model, Parallelism
from llmb.values.recipe import Baseline, MfuSource, Window

ProfileTool = Literal["nsys", "nccl-trace"]
OptionsT = TypeVar("OptionsT")  # the attrs class of a plugin's own options


@attrs.frozen(kw_only=True)
class Paths:
    """Where things lie on the target: this run's directory, and what all runs of a work directory share."""

    run: str
    cache: str


@attrs.frozen(kw_only=True)
class Profile:
    """A capture that the user asked for. Such a run is recorded, and never judged against a baseline."""

    tool: ProfileTool
    start_step: int | None = None
    stop_step: int | None = None
    ranks: tuple[int, ...] | None = None
    gpu_metrics: bool = False
    cpu: bool = False


@attrs.frozen(kw_only=True)
class Run(Generic[OptionsT]):
    """All that a framework sees of what it shall run: no scheduler, no target.

    ``settings`` is the framework's part of the recipe, ``options`` the spec's [framework] table in the plugin's own
    class. ``baseline`` is null where none is published or where the run differs from what was published;
    ``differences`` then names the keys that do.
    """

    id: str
    name: str
    recipe: str
    release: str
    gpu_type: str
    dtype: str
    gpus: int
    gpus_per_node: int
    steps: int
    repeat: int = 1
    model: Model
    parallelism: Parallelism
    flop_formula: FlopFormula
    mfu_from: MfuSource
    window: Window
    tolerance: float
    proxy: bool
    recompute_layers: int = 0
    offload_layers: int = 0
    cuda_graphs: bool = False
    image: Image | None
    time_limit_s: int
    env: Mapping[str, str] = attrs.field(factory=FrozenMap, converter=freeze)
    mounts: tuple[Mount, ...] = ()
    profile: Profile | None = None
    settings: Mapping[str, Any] = attrs.field(factory=FrozenMap, converter=freeze)
    options: OptionsT
    paths: Paths
    accelerator: Accelerator
    baseline: Baseline | None = None
    differences: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """How many whole nodes the GPUs fill."""
        return -(-self.gpus // self.gpus_per_node)


@attrs.frozen(kw_only=True)
class Target(Generic[OptionsT]):
    """Where runs go. ``host`` is null for this machine; ``options`` is the scheduler plugin's own class.

    ``gpu_types`` are those that the runs ask for; ``gpus_per_node`` is set where a question is about one run.

    ``facts`` is what the scheduler's probe printed there, and empty where nothing may be started, as in a dry run.
    """

    scheduler: str
    name: str | None = None
    host: str | None = None
    workdir: str
    options: OptionsT
    gpu_types: tuple[str, ...] = ()
    gpus_per_node: int | None = None
    facts: Mapping[str, str] = attrs.field(factory=FrozenMap, converter=freeze)

    def paths(self, run_id: str) -> Paths:
        """The paths of one run (or shared task) under the work directory."""
        return Paths(run=f"{self.workdir}/runs/{run_id}", cache=self.cache)

    @property
    def cache(self) -> str:
        """The folder that all runs of the work directory share."""
        return f"{self.workdir}/cache"
