"""The plugin has no error."""

import llmb


def test_the_plugin_matches_its_hooks() -> None:
    name = "__name__"
    [plugin] = [each for each in llmb.list_plugins() if each.name == name]
    assert plugin.error is None
