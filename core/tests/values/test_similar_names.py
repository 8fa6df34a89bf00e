"""The name that was probably meant."""

from __future__ import annotations

import pytest

from llmb.values.error_text import nearest_name

NAMES = ("nemo_launcher", "megatron_bridge", "MaxText", "maxtext_extra")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nemo", "nemo_launcher"),
        ("megatron", "megatron_bridge"),
        ("MAX", "MaxText"),
        ("maxtex", "MaxText"),
        ("ne", None),
        ("", None),
        ("..", None),
        ("launcher_of_mine", None),
    ],
)
def test_the_most_like_is_meant_else_the_shortest_that_begins_so(name: str, meant: str | None) -> None:
    assert nearest_name(name, NAMES) == meant
