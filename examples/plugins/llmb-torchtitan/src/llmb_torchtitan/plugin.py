"""Framework plugin for torchtitan."""

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
from llmb_torchtitan.job_config import job_config
from llmb_torchtitan.log import TorchTitanLog
from llmb_torchtitan.validation import find_errors


@attrs.frozen(kw_only=True)
class TorchTitanOptions:
    """Options in [framework]."""

    config: Mapping[str, Mapping[str, Any]] = attrs.field(factory=FrozenMap)
    """Keys of torchtitan's job configuration, by table; they override those of the recipe. Default: empty.
    Example: ``{ training = { seed = 1 } }``
    """
    python: str = attrs.field(default="python", metadata={"comparable": True})
    """Python interpreter of the environment with torchtitan. Example: ``"python3"``"""
    checkout: str | None = None
    """Existing checkout of torchtitan. Default: llmb's own checkout. Example: ``"/opt/torchtitan"``"""


class TorchTitan(FrameworkHooks[TorchTitanOptions]):
    """Training with torchtitan, one task per GPU. Each task reads the same variables as under torchrun."""

    options = TorchTitanOptions

    @hookimpl
    def prepare_env(self, run: Run[TorchTitanOptions]) -> Environment:
        """Return the image of the spec, if any, and torchtitan's repository unless the spec sets a checkout."""
        repositories = () if run.options.checkout is not None else (_repository(run),)
        return Environment(base=run.image, repositories=repositories)

    @hookimpl
    def build_job(self, run: Run[TorchTitanOptions]) -> Job:
        """Return the job with one training phase. Raise SpecError with all errors of the run."""
        import tomli_w

        if errors := find_errors(run):
            raise SpecError(*errors)
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
        """Return a parser for the step lines of every version since April 2024.

        For a run, the parser computes step times from the batch.
        """
        if run is None:
            return TorchTitanLog()
        return TorchTitanLog(run.parallelism.global_batch_size * run.model.seq_len / run.gpus)


def _repository(run: Run[TorchTitanOptions]) -> Repository:
    """Return the repository of the recipe. Raise RecipeError if the recipe has none."""
    if (repository := Repository.of(run.settings)) is None:
        raise RecipeError(Fault(message="missing table", key="framework.repository"))
    return repository
