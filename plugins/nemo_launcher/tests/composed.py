"""The configuration that NeMo would see: a job's file and overrides, composed by the real Hydra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from llmb import Job


def words_after(command: tuple[str, ...], option: str) -> str:
    """The value of ``--option=value`` among the words."""
    [value] = [word.partition("=")[2] for word in command if word.startswith(f"{option}=")]
    return value


def composed(job: Job, folder: Path) -> dict[str, Any]:
    """The configuration of the job's training phase; its file is placed in ``folder``."""
    command = job.phases[-1].command
    name, place = words_after(command, "--config-name"), words_after(command, "--config-path")
    (folder / name).write_text(job.files[f"{place}/{name}"])
    overrides = command[command.index(f"--config-name={name}") + 1 :]
    with initialize_config_dir(str(folder), version_base=None):
        config = compose(name, overrides=list(overrides))
    OmegaConf.set_struct(config, False)
    whole = OmegaConf.to_container(config, resolve=True)
    assert isinstance(whole, dict)
    return {str(key): value for key, value in whole.items()}
