"""Framework plugin for torchtitan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from llmb import (
    Dataset,
    Environment,
    FrameworkHooks,
    FrozenMap,
    Job,
    LogFiles,
    LogParser,
    Run,
    Signature,
    SpecError,
    hookimpl,
    read_signatures,
)
from llmb_torchtitan.hub_download import hub_tasks
from llmb_torchtitan.job_config import log_interval
from llmb_torchtitan.log import TorchTitanLog
from llmb_torchtitan.software import software_tasks
from llmb_torchtitan.training_job import job_env, job_files, job_mounts, repository_of, train_phase
from llmb_torchtitan.validation import SET_BY_LLMB, find_errors

_COMPARABLE = {"comparable": True}


@attrs.frozen(kw_only=True)
class TorchTitanOptions:
    """Options in [framework]."""

    config: Mapping[str, Mapping[str, Any]] = attrs.field(factory=FrozenMap)
    """Keys of torchtitan's job configuration, by table; they override those of the recipe. Default: empty.
    Example: ``{ training = { seed = 1 } }``
    """
    python: str | None = attrs.field(default=None, metadata=_COMPARABLE)
    """Python with torchtitan's dependencies. Default: that of the software that the recipe adds to its image, else
    ``python``. Example: ``"python3"``
    """
    checkout: str | None = None
    """Existing checkout of torchtitan. Default: llmb's own checkout. Example: ``"/opt/torchtitan"``"""
    dataset: str | None = attrs.field(default=None, metadata=_COMPARABLE)
    """Existing folder of the recipe's dataset. Default: llmb downloads it. Example: ``"/data/c4"``"""
    tokenizer: str | None = attrs.field(default=None, metadata=_COMPARABLE)
    """Existing folder of the recipe's tokenizer. Default: llmb downloads it. Example: ``"/data/tokenizer"``"""


class TorchTitan(FrameworkHooks[TorchTitanOptions]):
    """Training with torchtitan, one task per GPU. Each task reads the same variables as under torchrun."""

    options = TorchTitanOptions
    key_hints = SET_BY_LLMB
    log_files = LogFiles(training=("log-torchtitan_*.out",), experiment=r"log-torchtitan_(.+?)_\d+_\d+\.out$")

    @hookimpl
    def prepare_env(self, run: Run[TorchTitanOptions]) -> Environment:
        """Return the image of the spec, if any, and torchtitan's repository unless the spec sets a checkout."""
        repositories = () if run.options.checkout is not None else (repository_of(run),)
        return Environment(base=run.image, repositories=repositories)

    @hookimpl
    def prepare_dataset(self, run: Run[TorchTitanOptions]) -> Dataset | None:
        """Return the tasks that build software and download data, or None if image and repository have all of it."""
        tasks = (*software_tasks(run), *hub_tasks(run))
        return Dataset(tasks=tasks) if tasks else None

    @hookimpl
    def build_job(self, run: Run[TorchTitanOptions]) -> Job:
        """Return the job with one training phase. Raise SpecError with all errors of the run."""
        if errors := find_errors(run):
            raise SpecError(*errors)
        return run.job((train_phase(run),), env=job_env(run), mounts=job_mounts(run), files=job_files(run))

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the causes of failure that only torchtitan reports."""
        return read_signatures("llmb_torchtitan", "signatures.toml")

    @hookimpl
    def parse_log(self, run: Run[TorchTitanOptions] | None) -> LogParser:
        """Return a parser for the step lines of every version since April 2024.

        For a run, the parser computes step times from the batch.
        """
        if run is None:
            return TorchTitanLog()
        return TorchTitanLog(
            tokens_per_step=run.parallelism.global_batch_size * run.model.seq_len / run.gpus,
            printed_every=log_interval(run) or 1,
        )
