"""A job that prints its environment leaves no token in the record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import llmb

TOKEN = "very-secret-7d1f9c"
OTHER = "hf_" + "Ab3" * 11
PASSWORD = "pass-of-the-proxy"
LEAK = f"env; echo 'value={OTHER}'; at=@; echo https_proxy=http://me:{PASSWORD}${{at}}proxy:3128; echo leaked; exit 3"


def record(toy: Any) -> list[Path]:
    """Return the copies of logs, the events and the result."""
    own = ("run.toml", "job.sh")  # they contain the spec
    return [file for file in (toy.home / "runs").rglob("*") if file.is_file() and file.name not in own]


@pytest.mark.parametrize("how", ["job", "task"])
def test_secrets_that_a_job_prints_are_masked(toy: Any, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    leaks: dict[str, dict[str, Any]] = {
        "job": {"secrets": ["TOY_TOKEN"], "end": "leak", "end_step": 2},
        "task": {"task": "data", "task_secrets": ["TOY_TOKEN"], "task_end": LEAK},
    }
    done = toy.llmb("run", toy.spec(framework=leaks[how], env={"OTHER": OTHER}))
    shown = done.stdout + done.stderr
    texts = [file.read_text(errors="replace") for file in record(toy)]
    assert any("\nleaked\n" in text for text in texts)
    assert any("*" * len(TOKEN) in text for text in texts)
    for secret in (TOKEN, OTHER, PASSWORD):
        assert not [text for text in texts if secret in text]
        assert secret not in shown
    assert all(file.stat().st_mode & 0o077 == 0 for file in record(toy) if file.parent.name == "logs")


def test_a_secret_of_any_bytes_reaches_the_job_and_is_masked(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = b"p\xe4ss'wort"  # Latin-1
    monkeypatch.setenv("TOY_TOKEN", os.fsdecode(secret))
    run = toy.run(framework={"secrets": ["TOY_TOKEN"], "end": "leak", "end_step": 2})
    printed = b"".join(file.read_bytes() for file in (toy.work(run["run_id"]) / "logs").iterdir())
    copied = b"".join(file.read_bytes() for file in record(toy))
    assert secret in printed
    assert secret not in copied
    assert b"*" * len(secret) in copied


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_a_secret_with_blanks_is_masked_also_where_the_last_output_is_cut(
    toy: Any, monkeypatch: pytest.MonkeyPatch, blank: str
) -> None:
    monkeypatch.setenv("TOY_TOKEN", f"a pass{blank}phrase of{blank}many words")
    end = f"printf '%s %0190d' \"$TOY_TOKEN\" 0; until [ -e {toy.gate} ]; do sleep 0.02; done"
    task = {"task": "data", "task_secrets": ["TOY_TOKEN"], "task_end": end}
    shown = ""
    for event in llmb.start(llmb.load(toy.spec(framework=task))):
        shown += str(event)
        if "0" * 190 in shown:
            toy.gate.touch()
    assert "... " + "0" * 190 in shown
    assert "words" not in shown


@pytest.mark.parametrize("on", ["host", "scheduler"])
def test_the_last_output_of_a_running_task_is_masked(toy: Any, monkeypatch: pytest.MonkeyPatch, on: str) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    end = f"echo ready $TOY_TOKEN; until [ -e {toy.gate} ]; do sleep 0.02; done; echo last $TOY_TOKEN; exit 3"
    task = {"task": "data", "task_on": on, "task_secrets": ["TOY_TOKEN"], "task_end": end}
    shown = ""
    session = llmb.start(llmb.load(toy.spec(framework=task)))
    for event in session:
        shown += str(event)
        if on == "scheduler" or "ready" in shown:
            toy.gate.touch()
    assert "last ****" in shown
    assert TOKEN not in shown + str(session.results)
