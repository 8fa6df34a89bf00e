"""The command of the user that runs when a run ends: ``[notify] command = [...]`` in ``config.toml``."""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from llmb.paths import config_folder
from llmb.records.record import RunRecord
from llmb.records.result import read_result
from llmb.values.errors import Fault, SpecError, located
from llmb.values.texts.error_text import unknown_key
from llmb.values.toml_files import read_optional_toml

WAIT_S = 10.0
"""Seconds for which a session waits at its end for commands that still run. They continue after that."""


class Notifier:
    """Starts the command for each run that ends. Its errors become notes and never affect a run."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._command: list[str] | None = None  # not read yet

    def notify(self, record: RunRecord) -> Iterator[str]:
        """Start the command with the run's result as JSON on its standard input. Yield a note if that fails."""
        try:
            if self._command is None:
                self._command = []  # an invalid file is reported once
                self._command = read_notify_command()
            if not self._command:
                return
            for process in self._running.values():
                process.poll()  # a zombie counts against the user's limit of processes
            with tempfile.TemporaryFile() as document:  # a pipe would block if the command does not read it
                document.write(f"{json.dumps(read_result(record).as_dict())}\n".encode())
                document.seek(0)
                self._running[record.run_id] = subprocess.Popen(
                    self._command,
                    stdin=document,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for llmb
                )
        except (OSError, SpecError) as error:
            yield f"the notify command did not run: {error}"

    def finish(self) -> Iterator[str]:
        """Wait a moment for the commands. Yield a note for each that failed."""
        until_s = time.monotonic() + WAIT_S
        for run_id, process in self._running.items():
            try:
                if exit_code := process.wait(max(0.0, until_s - time.monotonic())):
                    yield f"the notify command of {run_id} failed with exit code {exit_code}"
            except subprocess.TimeoutExpired:
                process.returncode = 0  # it continues without llmb, which Python would warn about
        self._running.clear()


def settings_file() -> Path:
    """Return the path of ``config.toml`` in the user's configuration directory."""
    return config_folder() / "config.toml"


def read_notify_command() -> list[str]:
    """Return the words of the command, none if the file does not set one. Raise SpecError, also for unknown keys."""
    file = settings_file()
    tables = read_optional_toml(file)
    table = tables.get("notify", {})
    errors = [unknown_key(key, key, ["notify"]) for key in tables if key != "notify"]
    if isinstance(table, dict):
        errors += [unknown_key(f"notify.{key}", key, ["command"]) for key in table if key != "command"]
    if errors:
        raise SpecError(*located(errors, str(file)))
    command = table.get("command", []) if isinstance(table, dict) else None
    if not isinstance(command, list) or not all(
        isinstance(word, str) and word and "\0" not in word for word in command
    ):
        expected = 'a list of words such as ["notify-send", "llmb"]'
        raise SpecError(Fault(message="invalid value", file=str(file), key="notify.command", expected=expected))
    return command
