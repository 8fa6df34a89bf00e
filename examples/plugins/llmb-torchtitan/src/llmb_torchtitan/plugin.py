"""The torchtitan framework: its environment, its configuration and command, its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from llmb import (
    Environment,
    Fault,
    FrameworkHooks,
    FrozenMap,
    Job,
    LogParser,
    Phase,
    RecipeError,
    Repository,
    Run,
    SpecError,
    hookimpl,
)
from llmb_torchtitan.config import faults, job_config
from llmb_torchtitan.log import TorchTitanLog


@attrs.frozen(kw_only=True)
class TorchTitanOptions:
    """[framework]; see README.md."""

    config: Mapping[str, Mapping[str, Any]] = attrs.field(factory=FrozenMap)
    python: str = attrs.field(default="python", metadata={"comparable": True})
    checkout: str | None = None


class TorchTitan(FrameworkHooks[TorchTitanOptions]):
    """Trains with torchtitan, one task per GPU: each finds in its environment what torchrun would tell it."""

    options = TorchTitanOptions

    @hookimpl
    def prepare_env(self, run: Run[TorchTitanOptions]) -> Environment:
        """torchtitan at the recipe's commit, and the image that the spec may name."""
        own = run.options.checkout is not None
        return Environment(base=run.image, repositories=() if own else (_repository(run),))

    @hookimpl
    def build_job(self, run: Run[TorchTitanOptions]) -> Job:
        """One phase. Raises SpecError for what torchtitan cannot do."""
        import tomli_w

        if wrong := faults(run):
            raise SpecError(*wrong)
        checkout = run.options.checkout or _repository(run).folder(run.paths.cache)
        config = f"{run.paths.run}/torchtitan.toml"
        command = (run.options.python, "-m", "torchtitan.train", "--job.config_file", config)
        return run.job(
            (Phase(name="train", command=command),),
            env={**run.settings["env"], "PYTHONPATH": checkout},
            files={config: tomli_w.dumps(job_config(run, checkout))},
        )

    @hookimpl
    def parse_log(self, run: Run[TorchTitanOptions] | None) -> LogParser:
        """A parser of step lines, whatever the version that printed them."""
        if run is None:
            return TorchTitanLog()
        return TorchTitanLog(run.parallelism.global_batch_size * run.model.seq_len / run.gpus)


def _repository(run: Run[TorchTitanOptions]) -> Repository:
    if (named := Repository.of(run.settings)) is None:
        raise RecipeError(Fault(message="is missing", key="framework.repository"))
    return named
