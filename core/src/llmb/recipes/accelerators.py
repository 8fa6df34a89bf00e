"""The accelerators that the core knows."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from llmb.values.frozen import FrozenMap, freeze
from llmb.values.model import Accelerator


@functools.cache
def accelerators() -> Mapping[str, Accelerator]:
    """The accelerators of ``gpus.toml`` by name: dense peaks in FLOP/s, memory in GB."""
    text = (resources.files("llmb.recipes") / "gpus.toml").read_text(encoding="utf-8")
    return FrozenMap((name, _accelerator(name, table)) for name, table in tomllib.loads(text).items())


def _accelerator(name: str, table: Mapping[str, Any]) -> Accelerator:
    return Accelerator(name=name, **{key: freeze(value) for key, value in table.items()})
