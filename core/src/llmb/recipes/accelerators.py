"""The accelerators that llmb knows, from ``gpus.toml``."""

import functools
import tomllib
from collections.abc import Mapping

from llmb.files import resource_text
from llmb.values.frozen import FrozenMap
from llmb.values.model import Accelerator


@functools.cache
def accelerators() -> Mapping[str, Accelerator]:
    """Return the accelerators of ``gpus.toml`` by name: dense peaks in FLOP/s, memory in GB."""
    tables = tomllib.loads(resource_text("llmb.recipes", "gpus.toml"))
    return FrozenMap((name, Accelerator(name=name, **table)) for name, table in tables.items())
