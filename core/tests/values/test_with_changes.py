"""Copies of frozen values are as strict as new values."""

from __future__ import annotations

import pytest

from llmb.values.copy_with_changes import with_changes
from llmb.values.environment import Environment
from llmb.values.types.value_type import InvalidValueError


def test_a_copy_has_the_changes_and_the_other_fields() -> None:
    before = Environment(secrets=("HF_TOKEN",))
    assert with_changes(before, secrets=("A", "B")) == Environment(secrets=("A", "B"))
    assert before.secrets == ("HF_TOKEN",)


def test_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"Environment has no field secret$"):
        with_changes(Environment(), secret=("HF_TOKEN",))


def test_a_value_of_a_wrong_type_is_an_error() -> None:
    with pytest.raises(InvalidValueError, match="secrets"):
        with_changes(Environment(), secrets=(1,))
