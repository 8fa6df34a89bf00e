"""The live view on a real terminal: what stays on the screen, whatever happens."""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.deadline import DEADLINE_S
from parts.screen import Screen

import llmb

ONE_AT_A_TIME = {"sweep": {"env.LEVEL": ["a", "b", "c"]}}


@pytest.mark.parametrize("times", [1, 2, 5])
def test_after_ctrl_c_the_table_stays_and_the_attach_command_is_the_last_text(toy: Any, times: int) -> None:
    spec = toy.spec(framework={"gate": str(toy.gate), "gate_step": 5}, **ONE_AT_A_TIME)
    screen = Screen.of_llmb("run", spec, env=toy.env)
    screen.wait_for("5 of 5")
    screen.press("\x03" * times)
    assert screen.end() == 130
    last_line = screen.unwrapped.splitlines()[-1]
    begin, _, ids = last_line.partition("llmb attach ")
    assert begin == "detached; follow with: "
    assert sorted(ids.split()) == [record.name for record in toy.records]
    assert screen.lines[0].split()[:4] == ["run", "state", "step", "s/step"]
    assert "3 runs: 1 running, 2 queued" in screen.text


def test_after_ctrl_c_in_a_large_sweep_the_attach_command_selects_no_other_run(toy: Any) -> None:
    framework = {"gate": str(toy.gate), "gate_step": 5}
    assert toy.llmb("run", toy.spec(framework=framework), "--detach").returncode == 0
    sweep = {"env.LEVEL": [str(level) for level in range(17)]}
    screen = Screen.of_llmb("run", toy.spec(framework=framework, sweep=sweep), env=toy.env, rows=60)
    screen.wait_for("17 runs: 17 queued")
    assert toy.llmb("run", toy.spec(framework=framework), "--detach").returncode == 0
    screen.press("\x03")
    assert screen.end() == 130
    begin, _, filters = screen.unwrapped.splitlines()[-1].partition("llmb attach ")
    assert begin == "detached; follow with: "
    _, *of_sweep, _ = (run["run_id"] for run in toy.runs("runs"))
    with llmb.attach(shlex.split(filters)) as session:
        assert session.run_ids == of_sweep


TWICE = """
import os, signal, sys
from llmb.cli.views.choose_view import open_view
from llmb.cli.views.live_view import LiveView
draw_final_table = LiveView.close
def close(view):
    os.kill(os.getpid(), signal.SIGINT)
    draw_final_table(view)
LiveView.close = close
try:
    with open_view() as view:
        view.add_runs(["a-run"])
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("detached", file=sys.stderr)
"""


def test_a_second_ctrl_c_does_not_interrupt_the_final_table() -> None:
    screen = Screen([sys.executable, "-c", TWICE])
    assert screen.end() == 0
    assert screen.lines[1:2] == ["a-run"]
    assert screen.lines[-1] == "detached"


def test_after_ctrl_c_the_command_that_follows_logs_is_on_a_line_of_its_own(toy: Any) -> None:
    spec = toy.spec(framework={"gate": str(toy.gate), "gate_step": 3})
    assert toy.llmb("run", spec, "--detach").returncode == 0
    [record] = toy.records
    screen = Screen.of_llmb("logs", "-f", record.name, env=toy.env)
    screen.wait_for("toy step 3")
    screen.press("\x03")
    assert screen.end() == 130
    assert screen.lines[-1] == f"detached; follow with: llmb logs -f {record.name}"


def test_a_queued_run_shows_why_it_waits(toy: Any) -> None:
    spec = toy.spec(framework={"gate": str(toy.gate), "gate_step": 5})
    assert toy.llmb("run", spec, "--detach").returncode == 0
    toy.wait_for_state("queued")
    screen = Screen.of_llmb("run", spec, env=toy.env)
    screen.wait_for("queued      waits for other jobs")
    toy.gate.touch()
    assert screen.end() == 0
    assert "waits" not in screen.text


def test_a_run_that_waits_because_of_max_jobs_names_this_setting(toy: Any) -> None:
    """At 80 columns, while another run trains and all columns are used."""
    framework = {"gate": str(toy.gate), "gate_step": 5}
    screen = Screen.of_llmb("run", toy.spec(framework=framework, target={"max_jobs": 1}, **ONE_AT_A_TIME), env=toy.env)
    screen.wait_for("5 of 5")
    screen.wait_for("waits (max_jobs = 1)")
    assert [" ".join(line.split()[1:]) for line in screen.lines[2:4]] == ["planned waits (max_jobs = 1)"] * 2
    toy.gate.touch()
    assert screen.end() == 0


def test_a_ctrl_c_during_preparations_does_not_hide_the_attach_command(toy: Any) -> None:
    spec = toy.spec(framework={"task": "data", "task_gate": str(toy.gate)})
    screen = Screen.of_llmb("run", spec, env=toy.env)
    screen.wait_for("toy data")
    screen.press("\x03")
    assert screen.end() == 130
    [record] = toy.records
    assert screen.lines[-1].endswith(f"llmb attach {record.name}")


def test_finished_runs_stay_visible_and_are_counted_with_their_verdicts(toy: Any) -> None:
    spec = toy.spec(sweep={"framework.end": ["nothing", "exit 3"]}, framework={"end_step": 3})
    screen = Screen.of_llmb("run", spec, env=toy.env, rows=60)
    assert screen.end() == 1
    table = screen.lines[: screen.lines.index("2 runs: 1 completed, 1 failed")]
    assert [line.split()[1] for line in table[1:]] == ["completed", "failed"]
    assert "phase train, rank 0" in table[2]


def test_a_job_that_ended_while_no_process_followed_it_is_shown_with_all_its_steps(toy: Any) -> None:
    assert toy.llmb("run", toy.spec(), "--detach").returncode == 0
    toy.wait_for_journal("end")
    screen = Screen.of_llmb("attach", env=toy.env)
    assert screen.end() == 0
    assert screen.lines[1].split()[1:5] == ["completed", "5", "of", "5"]


@pytest.mark.parametrize("command", ["attach", "cancel"])
def test_a_run_that_ended_before_is_no_row_of_the_live_view(command: str, toy: Any) -> None:
    toy.run()
    [record] = toy.records
    screen = Screen.of_llmb(command, record.name, env=toy.env)
    assert screen.end() == 0
    lines = [line for line in screen.lines if not line.startswith("llmb: already ended: ")]
    assert lines[0] == f"{record.name}  completed"


def test_a_run_on_a_host_that_cannot_be_reached_keeps_its_recorded_state(toy: Any) -> None:
    run_id = toy.record()
    spec = toy.home / "runs" / run_id / "run.toml"
    target = {"scheduler": "slurm", "host": "nowhere.invalid", "workdir": "/nowhere"}
    spec.write_text(tomli_w.dumps(tomllib.loads(spec.read_text()) | {"target": target}))
    screen = Screen.of_llmb("attach", env=toy.env)
    assert screen.end() == 4
    assert screen.lines[1].split() == [run_id, "planned"]
    assert "unknown host name" in screen.text


def test_verbose_prints_the_commands_above_the_table(toy: Any) -> None:
    screen = Screen.of_llmb("run", toy.spec(), "--verbose", env=toy.env)
    assert screen.end() == 0
    lines = [*screen.history, *screen.lines]
    table = next(at for at, line in enumerate(lines) if line.split()[:2] == ["run", "state"])
    commands = [at for at, line in enumerate(lines) if line.startswith("this machine runs")]
    assert commands
    assert max(commands) < table


def test_errors_of_a_file_that_is_left_out_are_lines_broken_between_words(toy: Any) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"], "llmb", "accelerators.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[mine]\ngpus_per_node = "8"\nmemory_gb = 0\npeak_flops = { bf16 = 1e12 }\nsource = "me"\n')
    screen = Screen([sys.executable, "-m", "llmb", "validate", toy.spec()], env=toy.env)
    assert screen.end() == 0
    assert [line.strip() for line in screen.unwrapped.splitlines() if str(file) not in line][:4] == [
        "llmb: left out:",
        'mine.gpus_per_node: invalid value "8"; expected a positive integer',
        "llmb: left out:",
        "mine.memory_gb: invalid value 0; expected a positive number",
    ]


@pytest.fixture
def slow_probe(toy: Any) -> dict[str, str]:
    """Return an environment in which checking the target waits for the gate."""
    folder = toy.folder / "bin"
    folder.mkdir()
    (folder / "hostname").write_text(f"#!/bin/sh\nuntil [ -e {toy.gate} ]; do sleep 0.02; done; echo here\n")
    (folder / "hostname").chmod(0o755)
    return {**toy.env, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_terminal_shows_what_llmb_does_before_there_is_a_run(toy: Any, slow_probe: dict[str, str]) -> None:
    screen = Screen.of_llmb("run", toy.spec(target={"scheduler": "detached"}), env=slow_probe)
    assert screen.wait_for("checking this machine ...") == "checking this machine ..."
    toy.gate.touch()
    assert screen.end() == 0
    assert "checking this machine" not in screen.text


def test_an_interruption_before_there_is_a_run_is_the_last_text(toy: Any, slow_probe: dict[str, str]) -> None:
    screen = Screen.of_llmb("run", toy.spec(target={"scheduler": "detached"}), env=slow_probe)
    screen.wait_for("checking this machine ...")
    screen.press("\x03")
    assert screen.end() == 130
    assert screen.text == "llmb: interrupted"


def test_a_pipe_shows_what_llmb_does_if_that_takes_long(toy: Any, slow_probe: dict[str, str]) -> None:
    process = toy.start("run", toy.spec(target={"scheduler": "detached"}), env=slow_probe)
    toy.wait_for_message(process, "checking this machine ...")
    toy.gate.touch()
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0


SLOW_IMPORT = """
import importlib.machinery, pathlib, sys, time
class SlowImport:
    def find_spec(self, name, path=None, target=None):
        if name != "llmb.api":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module
        def wait_and_execute(module):
            while not pathlib.Path({gate!r}).exists():
                time.sleep(0.02)
            execute(module)
        spec.loader.exec_module = wait_and_execute
        return spec
sys.meta_path.insert(0, SlowImport())
"""


@pytest.mark.parametrize(
    ("command", "activity"),
    [
        ("run", "reading"),
        ("attach", "reading the records"),
        ("doctor box", "checking box"),
        ("validate", "checking"),
    ],
)
def test_on_a_slow_machine_a_command_shows_what_it_does_before_it_is_loaded(
    toy: Any, command: str, activity: str, write_target: Any
) -> None:
    write_target("box", scheduler="local")
    (toy.folder / "sitecustomize.py").write_text(SLOW_IMPORT.format(gate=str(toy.gate)))
    paths = f"{toy.folder}:{toy.env.get('PYTHONPATH', '')}"
    spec = [str(toy.spec())] if command in ("run", "validate") else []
    screen = Screen(toy.command(*command.split(), *spec), env={**toy.env, "PYTHONPATH": paths})
    screen.wait_for(activity)
    toy.gate.touch()
    screen.end()
    assert activity not in screen.text


FEED = """
import sys, llmb
from llmb.cli import output
from llmb.cli.views.choose_view import open_view
output.watch_streams()
count = int(sys.argv[1])
ids = [f"{n:05}-llama3.1-405b-gb200-fp8-512-{n}" for n in range(count)]
with open_view() as view:
    view.add_runs(ids)
    for number, run_id in enumerate(ids):
        view.show(llmb.Progress(run_id=run_id, state="queued", steps=50))
    view.show(llmb.Progress(run_id=ids[-1], state="running", phase="train", step=10, steps=50, step_time_s=5.741,
                            left_s=230.0))
    while (command := open(sys.argv[2]).read()) != "end":
        view.show(llmb.Note(text=command))
"""
RUNNING = ["train", "10", "of", "50", "5.741", "3:50"]


class FedView:
    """A live view of so many runs, of which the last one trains, and a pipe that feeds it messages."""

    def __init__(self, folder: Path, count: int, **size: int) -> None:
        self._pipe = folder / "pipe"
        os.mkfifo(self._pipe)
        self.screen = Screen([sys.executable, "-c", FEED, str(count), str(self._pipe)], **size)
        self.screen.wait_for("10 of 50")

    def show(self, message: str) -> None:
        self._pipe.write_text(message)

    def end(self) -> None:
        self.show("end")
        assert self.screen.end() == 0


@pytest.mark.parametrize("count", [1, 12, 1000])
@pytest.mark.parametrize("columns", [80, 120])
def test_any_number_of_runs_fits_the_terminal(count: int, columns: int, tmp_path: Path) -> None:
    view = FedView(tmp_path, count, columns=columns)
    lines = view.screen.lines
    assert lines[0].split()[0] == "run"
    assert lines[count if count < 20 else -2].split()[1:] == RUNNING
    if count > 1:
        shown = "; 21 of them shown" if count == 1000 else ""
        assert lines[-1] == f"{count:,} runs: 1 running, {count - 1} queued{shown}"
    assert view.screen.history == []
    view.end()


@pytest.mark.parametrize(("columns", "rows", "shown"), [(120, 40, 6), (66, 23, 6), (80, 10, 6), (48, 8, 5)])
def test_the_table_follows_the_size_of_the_terminal(columns: int, rows: int, shown: int, tmp_path: Path) -> None:
    view = FedView(tmp_path, 30)
    view.screen.resize(columns, rows)
    last = "30 runs: 1 running, 29 queued" + (f"; {rows - 3} of them shown" if rows < 33 else "")

    def follows(text: str) -> bool:
        train = [line.split()[1:] for line in text.splitlines() if "train" in line]
        return train[-1:] == [RUNNING[:shown]] and text.endswith(last[:columns])

    view.screen.wait_for(follows)
    view.end()
    assert view.screen.lines[-1] == last


def test_a_long_message_is_broken_between_words(tmp_path: Path) -> None:
    view = FedView(tmp_path, 1)
    command = "`a command that stays on a line of its own, however long it is, to be copied`"
    view.show("the target does not respond; " * 3 + command)
    view.screen.wait_for(lambda text: "copied`" in text.replace("\n", ""))
    view.end()
    assert view.screen.unwrapped.splitlines()[:3] == [
        "llmb: the target does not respond; the target does not respond; the target does",
        "  not respond;",
        f"  {command}",
    ]


def test_messages_stay_above_the_table_and_scroll_away(tmp_path: Path) -> None:
    view = FedView(tmp_path, 12)
    messages = [f"message {number}" for number in range(20)]
    for message in messages:
        view.show(message)
        view.screen.wait_for(f"llmb: {message}")
    view.end()
    lines = [*view.screen.history, *view.screen.lines]
    assert lines[:20] == [f"llmb: {message}" for message in messages]
    assert [line.split()[0] for line in lines[20:]] == [
        "run",
        *(f"{n:05}-llama3.1-405b-gb200-fp8-512-{n}" for n in range(12)),
        "12",
    ]
