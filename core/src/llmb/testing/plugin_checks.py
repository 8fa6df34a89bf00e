"""Contract tests that every plugin has: the cost of its import, and what all contracts share."""

import inspect
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pytest

from llmb.plugins.find_plugins import PluginEntry, choose_entry
from llmb.testing.any_scheduler import ContractRegistry
from llmb.values.errors import LlmbError

MAX_MODULES = 20
"""A package that imports more modules than this delays each command noticeably."""

ALREADY_IMPORTED = ("llmb", "attr", "attrs", "pluggy", "packaging")
"""Packages that llmb imports itself."""


def fail(message: str) -> NoReturn:
    """Fail the test with a message for the author of the plugin."""
    pytest.fail(message, pytrace=False)


@contextmanager
def errors_fail_the_test() -> Iterator[None]:
    """Fail the test with the message of an error that the block raises."""
    try:
        yield
    except LlmbError as error:
        fail(str(error))


class Contract:
    """The base of the contracts. Subclasses set ``kind``; those of authors set the name of the plugin."""

    kind: ClassVar[str]

    @property
    def plugin_name(self) -> str:
        """The name of the plugin in the TOML."""
        return str(getattr(self, self.kind))

    @property
    def registry(self) -> ContractRegistry:
        """The installed plugins and recipes, loaded once for each class of tests."""
        cls = type(self)
        if "_registry" not in vars(cls):
            cls._registry = ContractRegistry()
        return cls._registry

    _registry: ClassVar[ContractRegistry]

    @property
    def folder(self) -> Path:
        """The folder of the file with the tests."""
        return Path(inspect.getfile(type(self))).parent

    @property
    def entry(self) -> PluginEntry:
        """The entry point of the plugin."""
        return choose_entry(self.kind, self.plugin_name, self.registry.installed)


class PluginContract(Contract):
    """The base of the contracts of plugins with hooks."""

    @property
    def plugin(self) -> Any:
        """The plugin behind its guard. Skip the test if it cannot be loaded."""
        try:
            return self.load_plugin()
        except LlmbError:
            pytest.skip("the plugin cannot be loaded; see test_implements_its_hooks")

    def load_plugin(self) -> Any:
        """Return the plugin behind its guard. Raise PluginError if it does not match its hooks."""
        load: Any = getattr(self.registry, self.kind)
        return load(self.plugin_name)

    def test_causes_can_be_read(self) -> None:
        """diagnose() returns signatures. llmb calls this hook only after a failure."""
        with errors_fail_the_test():
            self.plugin.diagnose()

    def test_import_is_light(self) -> None:
        """The import of the plugin imports no large package, because every command would wait for it."""
        module = self.entry.value.partition(":")[0].strip()
        code = f"import sys, llmb.hookspecs; old = {{*sys.modules}}; import {module}; print(*({{*sys.modules}} - old))"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            fail(f"importing {module} failed: {done.stderr.strip().splitlines()[-1]}")
        if not done.stdout:
            fail(f"importing {module} ended Python with exit code 0")
        counts = Counter(name.partition(".")[0] for name in done.stdout.splitlines()[-1].split())
        known = {*sys.stdlib_module_names, *ALREADY_IMPORTED, module.partition(".")[0]}
        for package, count in counts.items():
            if package not in known and count > MAX_MODULES:
                fail(
                    f"importing {module} imports {package}, which delays every llmb command; "
                    f"import {package} in the function that needs it"
                )
