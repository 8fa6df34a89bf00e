"""Random inputs of each kind: no traceback, no control character on the terminal, no hang."""

from __future__ import annotations

import pytest
from fuzz.inputs import KINDS
from fuzz.run import HANG_S, fuzz

INPUTS = 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_random_inputs_are_answered_without_a_traceback(kind: str) -> None:
    assert [problem for number in range(INPUTS) if (problem := fuzz(0, number, kind, HANG_S))] == []
