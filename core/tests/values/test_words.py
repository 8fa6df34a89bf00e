"""Fields that hold one of a few words take no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmb import JobStatus, Notice, Phase


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda word: JobStatus(state=word), "JobStatus.state is 'every', where one of 'absent', 'unknown', "),
        (
            lambda word: JobStatus(state="ended", cause=word),
            "JobStatus.cause is 'every', where one of '', 'completed', ",
        ),
        (lambda word: Notice(kind=word), "Notice.kind is 'every', where one of 'total steps', 'finished', "),
        (
            lambda word: Phase(name="train", command=("true",), ranks=word),
            "Phase.ranks is 'every', where one of 'all', ",
        ),
    ],
)
def test_another_word_is_refused_with_those_that_are_due(make: Callable[[Any], object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make("every")
