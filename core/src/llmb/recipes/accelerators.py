"""The accelerators that llmb knows, from ``gpus.toml``."""

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources

from llmb.values.frozen import FrozenMap
from llmb.values.model import Accelerator


@functools.cache
def accelerators() -> Mapping[str, Accelerator]:
    """Return the accelerators of ``gpus.toml`` by name: dense peaks in FLOP/s, memory in GB."""
    text = (resources.files("llmb.recipes") / "gpus.toml").read_text(encoding="utf-8")
    return FrozenMap((name, Accelerator(name=name, **table)) for name, table in tomllib.loads(text).items())
