"""Logs of Monarch: exceptions of actors, which the client prints, and lines that several actors have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import last_exception

CLIENT = (
    'Traceback (most recent call last):\n  File "/opt/main.py", line 40, in <module>\n    asyncio.run(main())\n'
    "monarch._src.actor.actor_mesh.ActorError: {}\n"
)
REMOTE = """\
 Traceback of where the remote call failed (most recent call last):
  File "/opt/monarch/actor_mesh.py", line 932, in handle
    result = await the_method(*args, **kwargs)
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/train.py", line 84, in train
    batch = batches[name]
KeyError: 'text'
"""
UNDELIVERED = "[-]E1110 19:18:10.208045 387221 hyperactor/src/mailbox.rs:795] message not delivered, broken link\n"
ACTOR = 'Traceback (most recent call last):\n  File "/opt/train.py", line 84, in train\n    x()\nKeyError: 1\n'


def aggregated(text: str, count: int, rank: str = "") -> str:
    """Return lines as the client prints those of a few seconds, with escapes for colours."""
    lines = "".join(f"\x1b[33m[{count} similar log lines]\x1b[0m {rank}{line}\n" for line in text.splitlines())
    return f"\x1b[36m>>> Aggregated Logs (2026-11-22 12:47:59) >>>\x1b[0m\n{lines}<<< Aggregated Logs <<<\n\n"


def cause_of(folder: Path, text: str) -> str | None:
    log = folder / "run.log"
    log.write_text(text)
    found = last_exception([log])
    return found.cause if found else None


@pytest.mark.parametrize("message", ["A remote actor call has failed.", "Actor call trainer.train failed."])
@pytest.mark.parametrize("end", ["", UNDELIVERED * 20])
def test_the_exception_of_an_actor_is_the_cause_of_that_of_the_client(tmp_path: Path, message: str, end: str) -> None:
    text = aggregated("loading\n" * 9, 8) + CLIENT.format(message) + REMOTE + end
    assert cause_of(tmp_path, text) == "a process failed with KeyError"


def test_the_exception_of_the_client_counts_without_one_of_an_actor(tmp_path: Path) -> None:
    assert cause_of(tmp_path, CLIENT.format("the actor stopped")) == "a process failed with ActorError"


@pytest.mark.parametrize("rank", ["", "[3] "])
def test_an_exception_is_found_in_lines_that_actors_have_in_common(tmp_path: Path, rank: str) -> None:
    text = aggregated("loading\n" * 9, 8, rank) + aggregated(ACTOR, 1, rank)
    assert cause_of(tmp_path, text) == "a process failed with KeyError"
