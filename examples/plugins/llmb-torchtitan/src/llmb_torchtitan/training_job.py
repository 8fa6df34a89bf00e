"""The training phase, its environment, mounts and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmb import Fault, FrozenMap, Mount, Phase, RecipeError, Repository, Run, resource_text, with_paths
from llmb_torchtitan.hub_download import data_folders
from llmb_torchtitan.job_config import chosen_tables, job_config
from llmb_torchtitan.software import python_of

CONFIG = "torchtitan.toml"
WRAPPER = "titan_rank_wrapper.sh"


def repository_of(run: Run[Any]) -> Repository:
    """Return the repository of the recipe. Raise RecipeError if the recipe has none."""
    if (repository := Repository.of(run.settings)) is None:
        raise RecipeError(Fault(message="missing table", key="framework.repository"))
    return repository


def train_phase(run: Run[Any]) -> Phase:
    """Return the training phase. The wrapper extends search paths of the container for each rank."""
    program = with_paths(run.settings["program"], run.paths)
    words = ("bash", f"{run.paths.run}/{WRAPPER}", python_of(run), *program)
    return Phase(name="train", command=(*words, "--job.config_file", f"{run.paths.run}/{CONFIG}"))


def job_env(run: Run[Any]) -> Mapping[str, str]:
    """Return the environment of the recipe, with the variables that depend on the run."""
    env = {"TORCHTITAN_HOME": _checkout(run), **run.settings["env"]}
    if run.parallelism.pp > 1:
        env["LOG_RANK"] = str(_loss_rank(run))
    if chosen_tables(run).get("parallelism", {}).get("expert_parallel_comm_backend") == "hybridep":
        env |= run.settings.get("hybridep_env", {})
    return FrozenMap(with_paths(env, run.paths, names={"ep": str(run.parallelism.ep)}))


def job_mounts(run: Run[Any]) -> tuple[Mount, ...]:
    """Return the mounts of the folders that the spec names, which only a container needs."""
    if run.image is None:
        return ()
    chosen = (run.options.checkout, run.options.dataset, run.options.tokenizer)
    return tuple(Mount(source=folder, target=folder, read_only=True) for folder in dict.fromkeys(chosen) if folder)


def job_files(run: Run[Any]) -> Mapping[str, str]:
    """Return the wrapper, the configuration, and the files that the recipe names."""
    import tomli_w

    names = (WRAPPER, *run.settings.get("files", ()))
    texts = {f"{run.paths.run}/{name}": resource_text(__package__, name) for name in names}
    folders = {"checkout": _checkout(run), **data_folders(run)}
    return FrozenMap({**texts, f"{run.paths.run}/{CONFIG}": tomli_w.dumps(job_config(run, folders))})


def _checkout(run: Run[Any]) -> str:
    return run.options.checkout or repository_of(run).folder(run.paths.cache)


def _loss_rank(run: Run[Any]) -> int:
    """Return the first rank of the last pipeline stage, which prints the loss. torchtitan warns without it."""
    stages = run.parallelism.pp
    return run.gpus // stages * (stages - 1)
