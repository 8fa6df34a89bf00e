"""Framework plugin for Megatron-Bridge."""

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
    Model,
    Mount,
    Nsys,
    Phase,
    Repository,
    Run,
    Signature,
    SpecError,
    Venv,
    hookimpl,
    read_signatures,
    resource_text,
    with_paths,
)
from llmb_megatron_bridge.config_yaml import config_yaml
from llmb_megatron_bridge.env_rules import env_of_rules
from llmb_megatron_bridge.hub_download import hub_files, hub_tasks
from llmb_megatron_bridge.log import MegatronLog
from llmb_megatron_bridge.options import BridgeOptions
from llmb_megatron_bridge.preparation_jobs import preparation_tasks
from llmb_megatron_bridge.profiler_downloads import profiler_mounts, profiler_tasks
from llmb_megatron_bridge.recipe_settings import MegatronBridgeSettings
from llmb_megatron_bridge.run_paths import scripts_folder
from llmb_megatron_bridge.script_values import script_values
from llmb_megatron_bridge.training_job import train_phase
from llmb_megatron_bridge.validation import SET_BY_LLMB, find_errors

VBOOST = ("sudo", "nvidia-smi", "boost-slider", "--vboost", "1")
"""Command that gives the tensor cores priority for power. It needs root permission on the nodes."""


class MegatronBridge(FrameworkHooks[BridgeOptions]):
    """Training with Megatron-Bridge, one process per GPU."""

    options = BridgeOptions
    key_hints = SET_BY_LLMB
    settings = MegatronBridgeSettings
    model_keys = (*(field.name for field in attrs.fields(Model)), "pipeline_layout")  # see `find_errors`
    window = (35, 44)  # the window of the published recipes
    log_files = LogFiles(
        directory="experiments",
        training=("log-*.out",),
        other=(
            "sbatch_*",
            "vboost*",
            "*import_ckpt_exp*",
            "*prepare_squad_dataset_exp*",
            "*nsys_analysis*",
            "*nccltrace*",
        ),
        experiment=r"((?:pretrain|lora)_.+?)(?:_\d{1,2})?\.out$",  # between the user's account and the restart
    )

    rank_times_setting = 'framework.config = {"logger.timing_log_level" = 2, "logger.timing_log_option" = "all"}'

    @hookimpl
    def prepare_env(self, run: Run[BridgeOptions]) -> Environment:
        """Return the image or the locked virtual environment, the repository of the scripts and the needed secrets."""
        fetched = Repository.of(run.settings)
        return Environment(
            base=run.image or Venv.shipped("llmb_megatron_bridge", run.settings),
            repositories=(fetched,) if fetched else (),
            secrets=_secrets(run),
        )

    @hookimpl
    def prepare_dataset(self, run: Run[BridgeOptions]) -> Dataset | None:
        """Return the tasks for files of the model, for a checkpoint and its data, and for nsys and CUPTI of a capture.

        Pre-training has synthetic data.
        """
        tasks = (*preparation_tasks(run, _secrets(run)), *hub_tasks(run), *profiler_tasks(run))
        return Dataset(tasks=tasks) if tasks else None

    @hookimpl
    def build_job(self, run: Run[BridgeOptions]) -> Job:
        """Return the job: the training phase, preceded by vboost on each node if the spec enables it.

        Raise SpecError with all errors of the run.
        """
        values, mpi = script_values(run), run.settings.get("mpi")
        if errors := find_errors(run, values):
            raise SpecError(*errors)
        train = train_phase(run, values)
        phases = (_vboost_phase(), train) if run.options.vboost else (train,)
        return run.job(
            phases, env=_env(run, values), mounts=_mounts(run), files=_files(run), mpi=mpi, mpi_optional=True
        )

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the causes of failure that only Megatron reports."""
        return read_signatures("llmb_megatron_bridge", "signatures.toml")

    @hookimpl
    def parse_log(self, run: Run[BridgeOptions] | None) -> LogParser:
        """Return a parser for the iteration and step time lines of Megatron-LM, its forks and Megatron-Bridge."""
        return MegatronLog()


def _vboost_phase() -> Phase:
    return Phase(name="vboost", command=VBOOST, ranks="node", measured=False, contained=False)


def _needs_token(run: Run[BridgeOptions]) -> bool:
    wanted = run.options.hf_token
    return bool(run.settings.get("hf_token", {}).get("required") if wanted is None else wanted)


def _secrets(run: Run[BridgeOptions]) -> tuple[str, ...]:
    return ("HF_TOKEN",) if _needs_token(run) else ()


def _env(run: Run[BridgeOptions], values: Mapping[str, Any]) -> Mapping[str, str]:
    with_token = run.settings.get("hf_token", {}).get("env", {}) if _needs_token(run) else {}
    env = {**run.settings["env"], **env_of_rules(run, values), **with_token}
    return FrozenMap(with_paths(env, run.paths))


def _mounts(run: Run[BridgeOptions]) -> tuple[Mount, ...]:
    """Return the mounts of the scripts, of the spec's checkpoint and, for a capture, of nsys and CUPTI.

    CUPTI is a file in the folder of nsys. Only the scripts of the repository are mounted, so that Python imports the
    library from the image.
    """
    scripts, checkpoint = scripts_folder(run), run.options.checkpoint
    if not scripts:
        return ()
    weights = (Mount(source=checkpoint, target=checkpoint, read_only=True),) if checkpoint else ()
    return (Mount(source=scripts, target=scripts, read_only=True), *weights, *profiler_mounts(run))


def _files(run: Run[BridgeOptions]) -> Mapping[str, str]:
    texts = {f"{run.paths.run}/{name}": resource_text(__package__, name) for name in run.settings["files"]}
    texts |= hub_files(run)
    if name := run.settings.get("config_file"):
        texts[f"{run.paths.run}/{name}"] = config_yaml(run)
    if run.profile:
        texts |= Nsys.of(run.settings).files(run)
    return FrozenMap(texts)
