"""The configuration of a job as NeMo composes it: file and overrides, merged by the real Hydra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmb import Job


def option(command: tuple[str, ...], name: str) -> str:
    """Return the value of ``--option=value`` in a command."""
    [value] = [word.partition("=")[2] for word in command if word.startswith(f"{name}=")]
    return value


def composed(job: Job, folder: Path) -> dict[str, Any]:
    """Write the configuration file of the job into ``folder`` and return the composed configuration."""
    from hydra import compose, initialize_config_dir  # takes a tenth of a second in each process that collects tests
    from omegaconf import OmegaConf

    command = job.phases[-1].command
    name, path = option(command, "--config-name"), option(command, "--config-path")
    (folder / name).write_text(job.files[f"{path}/{name}"])
    overrides = command[command.index(f"--config-name={name}") + 1 :]
    with initialize_config_dir(str(folder), version_base=None):
        config = compose(name, overrides=list(overrides))
    OmegaConf.set_struct(config, False)
    composed_tree = OmegaConf.to_container(config, resolve=True)
    assert isinstance(composed_tree, dict)
    return {str(key): value for key, value in composed_tree.items()}
