"""Overrides of a configuration: one key, whether quoted, in tables, swept or given by --set."""

from __future__ import annotations

from typing import Any

import pytest

import llmb

SPEC = """
[workload]
recipe = "nemo_launcher/llama3.1-8b"
gpu_type = "h100"
dtype = "bf16"
gpus = 8
[target]
scheduler = "slurm"
workdir = "/scratch"
"""
QUOTED = '[framework.config]\n"trainer.log_every_n_steps" = 5'
IN_TABLES = "[framework.config]\ntrainer.log_every_n_steps = 5"
KEY = "trainer.log_every_n_steps"


def configs(text: str, *overrides: str) -> list[Any]:
    """Return the overrides of each run."""
    workload = llmb.loads(f"{SPEC}{text}\n", overrides=overrides)
    llmb.validate(workload)
    return [dict(spec.run.options.config) for spec in workload.runs]


@pytest.mark.parametrize("text", [QUOTED, IN_TABLES])
@pytest.mark.parametrize("override", [(), (f"framework.config.{KEY}=5",), (f'framework.config."{KEY}"=5',)])
def test_quoted_keys_and_tables_mean_the_same(text: str, override: tuple[str, ...]) -> None:
    text = text.replace("5", "9") if override else text
    assert configs(text, *override) == [{KEY: 5}]


@pytest.mark.parametrize("key", [f'"framework.config.{KEY}"', f"framework.config.{KEY}", f'framework.config."{KEY}"'])
def test_a_key_of_the_configuration_can_be_swept(key: str) -> None:
    assert configs(f"[sweep]\n{key} = [5, 10]") == [{KEY: 5}, {KEY: 10}]


@pytest.mark.parametrize(
    ("text", "override", "message"),
    [
        (f'{IN_TABLES}\n"{KEY}" = 6', (), f"framework.config.{KEY}: set twice; remove one"),
        (
            f"{QUOTED}\n[sweep]\nframework.config.{KEY} = [1]",
            (),
            f"framework.config.{KEY} is both swept and set",
        ),
        (
            "[sweep]\nframework.config.trainer.max_steps = [1, 2]",
            (),
            "config.trainer.max_steps: llmb sets this key",
        ),
        (IN_TABLES.replace("log_every_n_steps", "log"), (), "framework.config.trainer.log: unknown key"),
        ("[framework.config]\ntrainer = {}", (), "framework.config.trainer: invalid value {...}; expected a string"),
        ("[framework]\nconfig = 3", (), "framework.config: invalid value 3; expected a table"),
        ("", ("framework.config.trainer.log=3",), "framework.config.trainer.log: unknown key"),
    ],
)
def test_a_wrong_override_is_one_error(text: str, override: tuple[str, ...], message: str) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        configs(text, *override)
    [error] = raised.value.faults
    assert message in str(error)
