"""The Megatron-Bridge framework: its environment, its command lines, its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from llmb import (
    Environment,
    FrameworkHooks,
    FrozenMap,
    Job,
    LogFiles,
    LogParser,
    Mount,
    Nsys,
    Phase,
    Repository,
    Run,
    SpecError,
    Venv,
    hookimpl,
    resource_text,
    with_paths,
)
from llmb_megatron_bridge.command import train_phase
from llmb_megatron_bridge.config_file import config_file
from llmb_megatron_bridge.faults import faults
from llmb_megatron_bridge.log import MegatronLog

VBOOST = ("sudo", "nvidia-smi", "boost-slider", "--vboost", "1")
"""Steers power towards the tensor cores; it needs the right to, on the nodes themselves."""


@attrs.frozen(kw_only=True)
class BridgeOptions:
    """[framework].

    ``fp8_recipe`` is how FP8 is scaled: "cs" (current scaling, the recipes' own) or "mx". ``config`` holds further
    overrides of Megatron-Bridge's configuration (``"optimizer.lr" = 1e-4``); they win over the recipe's. ``vboost``
    gives power to the tensor cores first, on each node before the training. ``hf_token``: whether HF_TOKEN is needed;
    absent, the recipe tells.
    """

    fp8_recipe: Literal["cs", "mx"] | None = None
    config: Mapping[str, str | int | float | bool] = attrs.field(factory=FrozenMap)
    vboost: bool = False
    hf_token: bool | None = None


class MegatronBridge(FrameworkHooks[BridgeOptions]):
    """Trains with Megatron-Bridge: one process per GPU."""

    options = BridgeOptions
    window = (35, 44)  # of the published recipes
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
        experiment=r"(pretrain_.+?)(?:_\d{1,2})?\.out$",  # between the user's account and the number of the restart
    )

    @hookimpl
    def prepare_env(self, run: Run[BridgeOptions]) -> Environment:
        """The recipe's image with the repository of its scripts, or the locked virtual environment."""
        fetched = Repository.of(run.settings)
        return Environment(
            base=run.image or Venv.shipped("llmb_megatron_bridge", run.settings),
            repositories=(fetched,) if fetched else (),
            secrets=("HF_TOKEN",) if _needs_token(run) else (),
        )

    @hookimpl
    def build_job(self, run: Run[BridgeOptions]) -> Job:
        """One training phase, after one on each node where vboost is asked for. Raises SpecError."""
        if wrong := faults(run):
            raise SpecError(*wrong)
        vboost = Phase(name="vboost", command=VBOOST, ranks="node", measured=False, contained=False)
        phases = (vboost, train_phase(run)) if run.options.vboost else (train_phase(run),)
        return run.job(phases, env=_env(run), mounts=_mounts(run), files=_files(run))

    @hookimpl
    def parse_log(self, run: Run[BridgeOptions] | None) -> LogParser:
        """A parser of iteration and step time lines, of Megatron-LM and its forks too."""
        return MegatronLog()


def _needs_token(run: Run[BridgeOptions]) -> bool:
    wanted = run.options.hf_token
    return bool(run.settings.get("hf_token", {}).get("required") if wanted is None else wanted)


def _env(run: Run[BridgeOptions]) -> Mapping[str, str]:
    with_token = run.settings.get("hf_token", {}).get("env", {}) if _needs_token(run) else {}
    env = {**run.settings["env"], **with_token}
    return FrozenMap(with_paths(env, run.paths))


def _mounts(run: Run[BridgeOptions]) -> tuple[Mount, ...]:
    """The scripts alone: the rest of the repository must not be taken for what the image has."""
    fetched = Repository.of(run.settings)
    if fetched is None:
        return ()
    scripts = f"{fetched.folder(run.paths.cache)}/{run.settings['scripts']}"
    return (Mount(source=scripts, target=scripts, read_only=True),)


def _files(run: Run[BridgeOptions]) -> Mapping[str, str]:
    texts = {f"{run.paths.run}/{name}": resource_text(__package__, name) for name in run.settings["files"]}
    if name := run.settings.get("config_file"):
        texts[f"{run.paths.run}/{name}"] = config_file(run)
    if run.profile:
        texts |= Nsys.of(run.settings).files(run)
    return FrozenMap(texts)
