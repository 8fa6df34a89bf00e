"""One registry for many calls of the library: plugins and recipes are read once."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import llmb
from llmb.plugins import registry as registry_module

RECIPE = "maxtext/llama2-tiny"
POINT: dict[str, Any] = {"gpu_type": "cpu", "dtype": "fp32", "gpus": 1}
STEP = "completed step: {}, seconds: 0.5, TFLOP/s/device: 0.1, Tokens/s/device: 100.0, total_weights: 512, loss: 9.0\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of a log with a few steps."""
    file = tmp_path / "run.log"
    file.write_text("".join(map(STEP.format, range(10))))
    return file


@pytest.mark.parametrize(
    "call",
    [
        lambda log, registry: llmb.parse(log, recipe=RECIPE, gpus=1, registry=registry),
        lambda log, registry: llmb.parse_paths([log], framework="maxtext", registry=registry),
        lambda log, registry: llmb.grade(log, recipe=RECIPE, **POINT, registry=registry),
        lambda _log, registry: llmb.metrics(RECIPE, **POINT, step_time_s=1.0, registry=registry),
    ],
    ids=["parse", "parse_paths", "grade", "metrics"],
)
def test_a_call_with_a_registry_searches_no_plugins(
    call: Callable[[Path, llmb.PluginRegistry], object], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = llmb.PluginRegistry()
    assert call(log, registry)
    monkeypatch.setattr(registry_module, "find_plugins", lambda: pytest.fail("searched the plugins again"))
    assert call(log, registry)


def test_a_registry_parses_the_files_that_recipes_share_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[str] = Counter()
    parse = tomllib.loads

    def count(text: str, **options: Any) -> dict[str, Any]:
        parsed[text] += 1
        return parse(text, **options)

    monkeypatch.setattr(tomllib, "loads", count)
    assert llmb.PluginRegistry().recipes()
    assert not [text for text, times in parsed.items() if times > 1]
