"""Specs that use the plugins of this repository, which are loaded once."""

from __future__ import annotations

from typing import Any

import pytest

from llmb import PluginRegistry


@pytest.fixture(scope="session")
def registry() -> PluginRegistry:
    """Return a registry that reads each recipe once. No test in this folder installs a plugin or a pack."""
    return PluginRegistry()


@pytest.fixture
def spec(spec: Any, registry: PluginRegistry) -> Any:
    """Return a spec in a file, which is loaded with this registry."""
    spec.registry = registry
    return spec
