"""The contract of an extension."""

from typing import Any

from llmb.plugins.load import load
from llmb.plugins.registry import renderers_of
from llmb.testing.plugin_checks import PluginContract, errors_fail_the_test
from llmb.values.report_content import Report
from llmb.version import VERSION


class ExtensionContract(PluginContract):
    """Tests that every extension passes. Set ``extension`` to its name."""

    kind = "extension"
    extension: str

    def load_plugin(self) -> Any:
        """Return the extension behind its guard. Raise PluginError if it does not match its hooks."""
        return load(self.entry)

    def test_implements_its_hooks(self) -> None:
        """The plugin matches the hooks of its kind, and exists once."""
        with errors_fail_the_test():
            self.load_plugin()

    def test_accelerators_are_valid(self) -> None:
        """accelerators() returns GPU types. A run on any GPU type calls the hook, and leaves out one that fails."""
        with errors_fail_the_test():
            self.plugin.accelerators()

    def test_reports_are_written(self) -> None:
        """Each renderer of report() has a valid suffix, and writes a report without runs. Only reports call it."""
        with errors_fail_the_test():
            for renderer in renderers_of(self.plugin).values():
                renderer(Report(sets=(), settings=(), llmb_version=VERSION))
