"""Code blocks of the documentation, and a session that runs them as a reader would.

A block that a page shows is one of these:

- ``console``: commands after ``$``, each with its output. ``...`` in the output replaces any text.
- ``sh``: commands without output. Each must succeed.
- a block with ``title="FILE"``: a file that the commands of the page read.
- any other block has a comment in the line above it, ``<!-- tested by FILE -->`` or ``<!-- not run: REASON -->``. So
  has a block of commands that cannot be run. A comment ``<!-- all blocks: ... -->`` applies to all blocks of its page.

Further comments above a block: ``numbers differ`` (a measurement: any numbers match), ``with --dry-run`` (added to each
``llmb run``), ``setup: NAME`` (a function of `page_setups` that creates what the commands read), ``exit code N`` (of
the last command). ``run ids: a b`` at the top of a page are the ids of the runs that it records, in this order.
``page setup: NAME`` runs a function of `page_setups` first, and ``slow page`` makes the test of the page a slow one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import attrs
from parts.deadline import DEADLINE_S
from parts.forked import run_llmb
from parts.repository import ROOT
from parts.terminal import Terminal

COMMENT = re.compile(r"<!-- (.*?) -->")
SHELL_SYNTAX = re.compile(r"[|<>&;$`~]|^(?!llmb )")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SLOW_NOTE = re.compile(
    r"^(?:.* has been running for \d+ s|[a-z]+ing .* \.\.\.|Matplotlib is building .*)\n", re.MULTILINE
)
NUMBER = re.compile(r"\d[\d.,]*(?:e[+-]\d+)?")


@attrs.frozen(kw_only=True)
class Block:
    """A fenced block of a page. ``notes`` are the comments above it, else those for all blocks of the page."""

    page: str
    line: int
    language: str
    title: str
    text: str
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The place of the block, for messages."""
        return f"{self.page}:{self.line}"

    def note(self, kind: str) -> str | None:
        """Return the rest of the note that begins with ``kind``, or None without such a note."""
        return next((note[len(kind) :].strip() for note in self.notes if note.startswith(kind)), None)


def pages() -> list[str]:
    """List the pages of the documentation, relative to the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(page.relative_to(ROOT)) for page in found]


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page."""
    lines = (ROOT / page).read_text().splitlines()
    for_all = [note.removeprefix("all blocks: ") for note in page_notes(page) if note.startswith("all blocks: ")]
    begin = None
    for number, line in enumerate(lines):
        if begin is None and line.startswith("```"):
            begin = number
        elif begin is not None and line == "```":
            info, above = lines[begin][3:], begin - 1
            notes = []
            while above >= 0 and (comment := COMMENT.fullmatch(lines[above])):
                notes.append(comment[1])
                above -= 1
            title = re.search(r'title="([^"]+)"', info)
            yield Block(
                page=page,
                line=begin + 1,
                language=info.split()[0] if info else "",
                title=title[1] if title else "",
                text="\n".join(lines[begin + 1 : number]) + "\n",
                notes=tuple(notes or for_all),
            )
            begin = None


def page_notes(page: str) -> list[str]:
    """Return all comments of a page."""
    return COMMENT.findall((ROOT / page).read_text())


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block, each with the output that the page shows."""
    text = block.text if block.language == "console" else re.sub(r"^(?=\S)", "$ ", block.text, flags=re.MULTILINE)
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n?", part)
        assert command
        yield command[0].rstrip("\n"), part[command.end() :]


def matches(expected: str, actual: str, *, numbers_differ: bool = False) -> bool:
    """Check whether the output of a command is the one that the page shows."""
    pattern = r".*?".join(_literal(piece, numbers_differ) for piece in _trimmed(expected).split("..."))
    return re.fullmatch(pattern, _trimmed(actual), re.DOTALL) is not None


def _literal(text: str, numbers_differ: bool) -> str:
    if not numbers_differ:
        return re.escape(text)
    pieces = (r"[\d.,]+(?:e[+-]\d+)?".join(map(re.escape, NUMBER.split(word))) for word in re.split(r"[ \n]+", text))
    return r"\s+".join(pieces)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


@attrs.define
class Session:
    """A reader's terminal: a folder, an environment, and the ids of the runs that the page shows."""

    folder: Path
    env: Mapping[str, str]
    shown_ids: tuple[str, ...] = ()
    replaced: Mapping[str, str] = attrs.field(factory=dict)
    """Text of the page, such as the name of a cluster, with what this machine has instead."""

    def perform(self, block: Block) -> None:
        """Write the file of a block, or run its commands. Raise AssertionError if the output is not the one shown."""
        if block.title:
            file = self.folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._adapted(block.text))
        elif block.language == "python":
            code = [sys.executable, "-c", self._adapted(block.text)]
            done = subprocess.run(code, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{block.name}: {done.stderr}"
        else:
            self._run_commands(block)

    def _run_commands(self, block: Block) -> None:
        steps = list(commands(block))
        for number, (command, expected) in enumerate(steps, 1):
            dry = command.startswith("llmb run") and block.note("with --dry-run") is not None
            exit_code, output = self._execute(command + " --dry-run" * dry)
            wanted = int(block.note("exit code") or 0) if number == len(steps) else 0
            where = f"{block.name}: {command}\n{output}"
            assert exit_code == wanted, f"exit code {exit_code} of {where}"
            if block.language == "console":
                shown = self._adapted(expected)
                differ = block.note("numbers differ") is not None
                assert matches(shown, output, numbers_differ=differ), f"{where}\nexpected:\n{shown}"

    def _execute(self, command: str) -> tuple[int, str]:
        """Run a command on a terminal of 80 columns. Return its exit code, and what the terminal shows."""
        command = self._adapted(command).partition("  #")[0]
        with Terminal() as terminal:
            if SHELL_SYNTAX.search(command) or self.replaced:
                env = {**self.env, "PATH": f"{Path(sys.executable).parent}:{self.env['PATH']}"}
                words = ["bash", "-c", command]
                execute = partial(
                    subprocess.run, stdin=subprocess.DEVNULL, stdout=terminal.slave, stderr=terminal.slave
                )
                done = execute(words, cwd=self.folder, env=env, check=False, timeout=DEADLINE_S)
                exit_code = done.returncode
            else:
                words = shlex.split(command.replace("\\\n", ""))[1:]
                exit_code = terminal.run_llmb(words, env=self.env, cwd=self.folder)
        return exit_code, SLOW_NOTE.sub("", ESCAPE.sub("", terminal.written))

    def _adapted(self, text: str) -> str:
        """Replace what this machine has under another name, and the ids of runs."""
        for shown, actual in self.replaced.items():
            text = text.replace(shown, actual)
        if any(shown in text for shown in self.shown_ids):
            listed = run_llmb(["runs", "--all", "--ids"], env=self.env, cwd=self.folder).stdout.split()
            for shown, actual in zip(self.shown_ids, listed, strict=False):
                text = text.replace(shown, actual.partition("-")[0])
        return text


def new_session(page: str, folder: Path, replaced: Mapping[str, str] | None = None) -> Session:
    """Return a terminal of 80 columns in an empty folder, with the examples of the repository."""
    (folder / "examples").symlink_to(ROOT / "examples")
    env = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "LLMB_HOME": str(folder / ".llmb")}
    env |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / ".config")}
    notes = [note.removeprefix("run ids: ") for note in page_notes(page) if note.startswith("run ids: ")]
    return Session(folder, env, tuple(" ".join(notes).split()), replaced or {})
