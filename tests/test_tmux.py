"""The live view in tmux, which wraps the lines on its screen when it becomes narrower."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.deadline import DEADLINE_S, wait_until

pytestmark = [pytest.mark.real, pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")]

FEED = """
import os, resource, sys, time, llmb
from pathlib import Path
from llmb.cli import output
from llmb.cli.views.choose_view import open_view
output.watch_streams()
folder = Path(sys.argv[1])
def write(name, value):
    (folder / "new").write_text(str(value))
    (folder / "new").replace(folder / name)
write("pid", os.getpid())
ids = [f"{n:05}-llama3.1-405b-gb200-fp8-512-{n}" for n in range(6)]
with open_view() as view:
    view.add_runs(ids)
    step = 0
    while not (folder / "end").exists():
        quick = (folder / "quick").exists()
        for step in range(step + 1, step + (2000 if quick else 2)):
            for run_id in ids:
                view.show(llmb.Progress(run_id=run_id, state="running", phase="train", step=step, steps=10**9,
                                        step_time_s=5.741, left_s=230.0))
        time.sleep(0.02)
        write("step", step)
        if (folder / "hold").exists():
            view.draw_if_changed()  # now, and not in the thread that draws, which may be late
            write("held", step)
            while (folder / "hold").exists():
                time.sleep(0.02)
            (folder / "held").unlink()
        write("memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


class Tmux:
    """A live view of six runs in a window of a tmux server of its own."""

    def __init__(self, folder: Path, columns: int, rows: int) -> None:
        self.folder = folder
        self._socket = str(folder / "tmux")
        size = ["-x", str(columns), "-y", str(rows)]
        command = f"echo before; {shlex.join([sys.executable, '-c', FEED, str(folder)])}; echo after; read end"
        self.call("-f", "/dev/null", "new-session", "-d", *size, "bash", "-c", command)

    def call(self, *arguments: str) -> str:
        env = {name: value for name, value in os.environ.items() if name not in ("TMUX", "COLUMNS", "LINES")}
        done = subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            env=env,
            capture_output=True,
            text=True,
            check=True,
            timeout=DEADLINE_S,
        )
        return done.stdout

    def resize(self, columns: int, rows: int) -> None:
        """Resize between two updates. An update that tmux receives after it wrapped the lines is drawn too high."""
        (self.folder / "hold").touch()
        wait_until(lambda: self.value("held"), "the end of an update")
        wait_until(lambda: len({tuple(self.lines) for _ in range(30)}) == 1, "a screen that stays the same")
        self.call("resize-window", "-x", str(columns), "-y", str(rows))
        wait_until(lambda: shows_one_table(self.lines), f"one table at {columns} columns")
        (self.folder / "hold").unlink()
        wait_until(lambda: not (self.folder / "held").exists(), "the next update")

    @property
    def lines(self) -> list[str]:
        return self.call("capture-pane", "-p").rstrip("\n").split("\n")

    @property
    def history(self) -> int:
        return int(self.call("display-message", "-p", "#{history_size}"))

    def value(self, name: str) -> int:
        file = self.folder / name
        return int(file.read_text()) if file.exists() else 0


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    window = Tmux(tmp_path, 100, 20)
    yield window
    window.call("kill-server")


def shows_one_table(lines: list[str]) -> bool:
    """Check that the screen has one table with its six runs and its last line, and at most the line before it."""
    table = [line.split()[0][:5] for line in lines if line and line != "before"]
    return table == ["run", *(f"{n:05}" for n in range(6)), "6"]


def test_a_narrower_window_leaves_no_second_table(tmux: Tmux) -> None:
    wait_until(lambda: shows_one_table(tmux.lines), "the table")
    for columns, rows in ((60, 20), (40, 20), (100, 20), (70, 15), (120, 25)):
        tmux.resize(columns, rows)
        wait_until(lambda: shows_one_table(tmux.lines), "one table")
    (tmux.folder / "end").touch()
    wait_until(lambda: tmux.lines[-1] == "after", "the end")
    assert shows_one_table(tmux.lines[:-1])


def test_after_ctrl_z_the_table_is_drawn_below_the_output_of_other_programs(tmux: Tmux) -> None:
    wait_until(lambda: shows_one_table(tmux.lines), "the table")
    os.kill(tmux.value("pid"), signal.SIGSTOP)
    others = [f"other output {number}" for number in range(8)]
    terminal = Path(tmux.call("display-message", "-p", "#{pane_tty}").strip())
    terminal.write_text("\n".join([*others, ""]), encoding="ascii")
    wait_until(lambda: tmux.lines[-len(others) :] == others, "the other output")
    os.kill(tmux.value("pid"), signal.SIGCONT)
    wait_until(lambda: shows_one_table(tmux.lines[tmux.lines.index(others[-1]) + 1 :]), "the table below")
    assert [line for line in tmux.lines if line in others] == others


@pytest.mark.slow
def test_a_view_that_runs_for_long_does_not_grow(tmux: Tmux) -> None:
    """The view gets as many updates as in hours of training: neither scrollback nor memory grows."""
    wait_until(lambda: shows_one_table(tmux.lines), "the table")
    (tmux.folder / "quick").touch()
    wait_until(lambda: tmux.value("step") > 20_000, "the first updates")
    memory, step = tmux.value("memory"), tmux.value("step")
    wait_until(lambda: tmux.value("step") > step + 60_000, "many updates")
    assert tmux.history == 0
    assert tmux.value("memory") < memory + 2048  # KiB
    assert shows_one_table(tmux.lines)
