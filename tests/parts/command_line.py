"""The command line, called as a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from llmb import TargetError
from llmb.cli import app


@attrs.frozen
class Answer:
    """Exit code and output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The standard output as strict JSON."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


Llmb = Callable[..., Answer]


def command_line(capsys: pytest.CaptureFixture[str]) -> Llmb:
    """Return a function that runs ``llmb`` in this process."""

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        try:
            status = app.execute([str(each) for each in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        return Answer(status, *capsys.readouterr())

    return call


def error_line(error: pytest.ExceptionInfo[TargetError]) -> str:
    """Return the message of a TargetError, which has one line."""
    text = str(error.value)
    assert "\n" not in text
    assert error.value.exit_code == 4
    return text
