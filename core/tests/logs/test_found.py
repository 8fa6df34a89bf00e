"""What a parser found is a list of steps and notices, whether its steps were read or not."""

from __future__ import annotations

from llmb.logs.found import Found
from llmb.values.steps import Notice, Step


def test_what_was_found_is_a_list_of_steps_and_notices() -> None:
    found = Found()
    found.append(Notice(kind="finished"))
    found.append_unread(2, lambda text: Step(step=int(text)), [(3, b"3"), (4, b"4")])
    found.append(Step(step=5))

    expected = [Notice(kind="finished"), Step(step=3, attempt=2), Step(step=4, attempt=2), Step(step=5)]
    assert list(found) == expected
    assert found == expected
    assert (len(found), found[1], found[-1:], bool(Found())) == (4, expected[1], expected[-1:], False)
