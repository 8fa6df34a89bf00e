"""The pack has no error."""

import llmb


def test_the_pack_is_valid() -> None:
    [plugin] = [each for each in llmb.list_plugins() if each.name == "__name__"]
    assert plugin.error is None
