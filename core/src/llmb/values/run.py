"""One run: a workload spec with every list expanded and every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

import attrs

from llmb.values.frozen import FrozenMap, frozen_fields
from llmb.values.job import Image, Job, Mount, Phase
from llmb.values.model import Accelerator, FlopFormula, Model, Parallelism
from llmb.values.recipe import Baseline, MfuSource, Window

ProfileTool = Literal["nsys", "nccl-trace"]
OptionsT = TypeVar("OptionsT")  # the attrs class of a plugin's own options


@attrs.frozen(kw_only=True)
class Paths:
    """Where things lie on the target: this run's directory, and what all runs of a work directory share."""

    run: str
    cache: str


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Profile:
    """A capture that the user asked for. Such a run is recorded, and never judged against a baseline."""

    tool: ProfileTool
    start_step: int | None = None
    stop_step: int | None = None
    ranks: tuple[int, ...] | None = None
    gpu_metrics: bool = False
    cpu: bool = False


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Run(Generic[OptionsT]):
    """All that a framework sees of what it shall run: no scheduler, no target.

    ``id`` and ``paths.run`` are empty until the run is planned or started.
    ``published_model`` is the recipe's own, which ``model``, what is trained, may differ from. ``settings`` is the
    framework's part of the recipe, ``options`` the spec's [framework] table in the plugin's own class. ``baseline`` is
    null where none is published; it does not count where the run differs from what was published: ``differences``
    names the keys that do.
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
    published_model: Model
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
    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    mounts: tuple[Mount, ...] = ()
    profile: Profile | None = None
    settings: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    options: OptionsT
    paths: Paths
    accelerator: Accelerator
    baseline: Baseline | None = None
    differences: tuple[str, ...] = ()

    @property
    def framework(self) -> str:
        """The name of its framework's plugin, which the address of its recipe begins with."""
        return self.recipe.partition("/")[0]

    @property
    def nodes(self) -> int:
        """How many whole nodes the GPUs fill."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def domain_nodes(self) -> int | None:
        """How many nodes at a time lie in one NVLink domain: as many as divide the job and fit into one.

        Null where no domain is wider than a node.
        """
        domain_gpus = self.accelerator.domain_gpus
        if domain_gpus is None:
            return None
        most = max(1, domain_gpus // self.gpus_per_node)
        return max(nodes for nodes in range(1, most + 1) if self.nodes % nodes == 0)

    def job(
        self,
        phases: tuple[Phase, ...],
        *,
        env: Mapping[str, str] = FrozenMap(),
        mounts: tuple[Mount, ...] = (),
        files: Mapping[str, str] = FrozenMap(),
    ) -> Job:
        """These phases as the run's job, with a task for each GPU; on CPUs they are processes that need no GPU."""
        return Job(
            id=self.id,
            directory=self.paths.run,
            phases=phases,
            nodes=self.nodes,
            tasks_per_node=self.gpus_per_node,
            gpus_per_node=0 if self.gpu_type == "cpu" else self.gpus_per_node,
            domain_nodes=self.domain_nodes,
            env=env,
            mounts=mounts,
            files=files,
            time_limit_s=self.time_limit_s,
        )


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Target(Generic[OptionsT]):
    """Where runs go. ``host`` is null for this machine; ``options`` is the scheduler plugin's own class.

    ``gpu_types`` are those that the runs ask for; ``images`` is false for a probe that need not look for what runs
    containers, since nothing has an image there. ``gpus_per_node`` is the run's: as [target] states it, else as the
    GPU type has it, and no more than the run has in all; null where no run is meant, as for ``llmb doctor``.

    ``facts`` is what the scheduler's probe printed there, and empty where nothing may be started, as in a dry run.
    """

    scheduler: str
    name: str | None = None
    host: str | None = None
    workdir: str
    options: OptionsT
    gpu_types: tuple[str, ...] = ()
    images: bool = True
    gpus_per_node: int | None = None
    facts: Mapping[str, str] = attrs.field(factory=FrozenMap)

    def paths(self, run_id: str) -> Paths:
        """The paths of one run (or shared task) under the work directory."""
        return Paths(run=f"{self.workdir}/runs/{run_id}", cache=self.cache)

    @property
    def cache(self) -> str:
        """The folder that all runs of the work directory share."""
        return f"{self.workdir}/cache"
