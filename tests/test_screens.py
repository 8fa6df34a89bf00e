"""Golden screens: what users see of each command at 80, 120 and 200 columns.

``LLMB_UPDATE_SCREENS=1 uv run --group dev pytest tests/test_screens.py`` writes the files in tests/screens again.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import pytest
import tomli_w

import llmb
from llmb.analysis.measuring_window import MeasuredWindow
from llmb.analysis.metrics import compute_run_metrics
from llmb.analysis.steady_state import SteadyState
from llmb.cli.app import COMMANDS as COMMAND_FUNCTIONS
from llmb.cli.app import execute
from llmb.cli.command_examples import EXAMPLES
from llmb.cli.help_screens import GROUPS
from llmb.paths import runs_folder
from llmb.records.last_progress import write_progress
from llmb.records.record import RunRecord
from llmb.records.result import read_result
from llmb.spec.spec_of_run import build_run_toml
from llmb.state_machine.events import Ended

ROOT = Path(__file__).parents[1]
SCREENS = ROOT / "tests/screens"
LOG = ROOT / "plugins/maxtext/tests/logs/maxtext-0.2.5-cpu.log"
WIDTHS = (80, 120, 200)
"""Terminals: the smallest usual one, a laptop's, and a wide one."""

POINT = ("--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
COMMANDS = {
    "no-arguments": [],
    "help": ["--help"],
    "help-topics": ["help"],
    "help-spec": ["help", "spec"],
    "help-exit-codes": ["help", "exit-codes"],
    "help-targets": ["help", "targets"],
    "recipes": ["recipes"],
    "recipe": ["recipes", "maxtext/llama2-70b"],
    "runs": ["runs"],
    "show": ["show", "aaaa5"],
    "show-failed": ["show", "aaaa4"],
    "show-running": ["show", "aaaa6"],
    "compare": ["compare", "aaaa1,aaaa2", "aaaa3"],
    "doctor": ["doctor"],
    "dry-run": ["run", "workload.toml", "--dry-run"],
    "parse": ["parse", "train.log", "--framework", "maxtext"],
    "plugins": ["plugins"],
    "metrics": [
        "metrics",
        "maxtext/llama2-70b",
        "--gpu-type",
        "h100",
        "--dtype",
        "bf16",
        "--gpus",
        "64",
        "--step-time",
        "7.1",
    ],
}
RUNS = {
    "aaaa1": {"step_time_s": 7.0},
    "aaaa2": {"step_time_s": 7.02},
    "aaaa3": {"step_time_s": 7.61, "env": {"NCCL_IB_SL": "1"}},
    "aaaa4": {},
    "aaaa5": {"step_time_s": 7.05, "verdict": "pass"},
}
CHECKS = [
    llmb.DoctorCheck(name="records", ok=True, detail="/home/me/.local/share/llmb, 77 GB free"),
    llmb.DoctorCheck(name="eos: reachable", ok=True, detail="eos-login"),
    llmb.DoctorCheck(
        name="eos: account",
        ok=False,
        detail="Slurm has no account for the user me on the cluster eos, so it would reject every job",
        remedy="ask the administrators for an account, then set target.account",
    ),
    llmb.DoctorCheck(
        name="eos: maxtext recipes",
        ok=None,
        detail="available: llama2-tiny; unavailable: llama2-70b (the job needs 64 GPUs, but this cluster has 32)",
    ),
]


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a workload, a log and runs. Their values do not depend on this machine."""
    folder = tmp_path_factory.mktemp("screens")  # not tmp_path, because processes there are killed after a test
    (folder / "train.log").write_bytes(LOG.read_bytes())
    (folder / "workload.toml").write_text(SWEEP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMB_HOME", str(folder / "home"))
        for run_id, values in RUNS.items():
            plant(run_id, **values)
        plant_running("aaaa6", hours_ago=3)
    return folder


@pytest.fixture
def records(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the planted files to a command, and replace what depends on this machine or changes often."""
    monkeypatch.chdir(planted)
    monkeypatch.setenv("LLMB_HOME", "home")
    monkeypatch.setattr("secrets.choice", lambda characters: characters[0])  # run ids
    list_recipes = llmb.list_recipes
    monkeypatch.setattr(
        llmb, "list_recipes", lambda where: [each for each in list_recipes(where) if each.address.startswith(LISTED)]
    )
    monkeypatch.setattr(llmb, "list_plugins", lambda: PLUGINS)
    monkeypatch.setattr(llmb, "doctor", lambda *_arguments, **_more: CHECKS)


SWEEP = """\
[workload]
recipe = "nemo_launcher/llama3.1-70b"
gpu_type = "h100"
dtype = "bf16"
gpus = [64, 128]
[target]
scheduler = "slurm"
host = "eos-login"
workdir = "/lustre/me/llmb"
account = "me"
"""


def plant(run_id: str, *, step_time_s: float | None = None, verdict: Any = None, env: Any = None) -> None:
    """Record a run that completed with this step time, or failed without one."""
    spec, record = create_record(run_id, env or {})
    state: Any = "completed" if step_time_s else "failed"
    record.add_events([Ended(run_id=spec.run.id, state=state, verdict=verdict)])
    result = read_result(record)
    if step_time_s is None:
        result = attrs.evolve(result, failure=OUT_OF_MEMORY, reason=OUT_OF_MEMORY.cause, steps_done=0)
    else:
        result = attrs.evolve(
            result,
            metrics=compute_run_metrics(spec.run, step_time_s, None, 989e12),
            window=MeasuredWindow(first=49, last=49, count=1, step_time_s=step_time_s, step_time_std_s=None),
            steady_state=attrs.evolve(STEADY, step_time_s=step_time_s),
            verdict=verdict,
            reason="ratio 1.007, between 0.995 and 1.019; the limit is 1.05",
        )
    record.write_result(result.as_dict(), [])


def create_record(run_id: str, env: Any) -> tuple[llmb.RunSpec, RunRecord]:
    """Create the record of a run."""
    point = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
    target = {"scheduler": "slurm", "workdir": "/lustre/me/llmb"}
    [spec] = llmb.load({"workload": point, "target": target, "env": env}).runs
    spec = spec.with_run_id(f"{run_id}-llama2-70b-h100-bf16-64")
    record = RunRecord(runs_folder() / spec.run.id)
    record.create(tomli_w.dumps(build_run_toml(spec, {"created": f"2026-11-0{run_id[-1]}T09:30:00+00:00"})), "")
    return spec, record


def plant_running(run_id: str, *, hours_ago: int) -> None:
    """Record a run that trained when llmb detached from it."""
    spec, record = create_record(run_id, {})
    time_s = time.time() - 3600 * hours_ago
    (record.directory / "events.jsonl").write_text("")  # the first event has the present time
    record.add_events([llmb.Running(run_id=spec.run.id, job_id="4242", time=time_s - 60)])
    progress = llmb.Progress(
        state="running", phase="train", step=12, step_time_s=7.03, mfu=0.5236, left_s=267.1, limit_step=41
    )
    write_progress(record, attrs.evolve(progress, time=time_s), 0)


OUT_OF_MEMORY = llmb.Failure(
    cause="the accelerator is out of memory",
    evidence="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has 79.10 GiB in total",
    line=812,
    remedy="reduce parallelism.micro_batch_size, or raise parallelism.tp",
)
STEADY = SteadyState(
    first=4, last=49, count=46, step_time_s=7.0, step_time_std_s=0.01, drift=0.001,
    spikes=(), spike_share=0.0, spike_period=None, autocorrelation=0.0,
)  # fmt: skip
PLUGINS = [
    llmb.PluginInfo(name="maxtext", kind="framework", distribution="llmb-maxtext", version="0.1.0",
                    hooks=("build_job", "parse_log", "prepare_env"), error=None),
    llmb.PluginInfo(name="local", kind="scheduler", distribution="llmb-local", version="0.1.0",
                    hooks=("build_job", "cancel", "checks", "poll", "prepare_env", "probe", "submit"), error=None),
    llmb.PluginInfo(name="broken", kind="framework", distribution="llmb-broken", version="0.3.0", hooks=(),
                    error="cannot import llmb_broken: ModuleNotFoundError: No module named 'torch'"),
]  # fmt: skip
LISTED = ("maxtext/llama2-70b", "megatron_bridge/llama3.1-405b", "nemo_launcher/grok1", "nemo_launcher/llama3.1-8b")
"""The recipes of the golden list, so that a new recipe changes no screen."""


def show(arguments: list[str], width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the text of a command on a terminal without colours, with so many columns."""
    for name, value in {"COLUMNS": str(width), "LINES": "50", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    screen = Terminal()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, screen)
    execute(arguments)
    shown = screen.getvalue().replace(str(Path.cwd()), "/home/me")
    return shown.partition("#!/usr/bin/env bash")[0]  # the script of a dry run has golden files of its own


SAME_AT_ANY_WIDTH = ("no-arguments", "help-topics", "help-spec", "help-exit-codes", "help-targets")
SCREENS_TO_TEST = [
    (name, width) for name in COMMANDS for width in WIDTHS if width == 80 or name not in SAME_AT_ANY_WIDTH
]


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize(("name", "width"), SCREENS_TO_TEST)
def test_the_screen_is_the_expected_one(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = show(COMMANDS[name], width, monkeypatch)
    file = SCREENS / f"{name}.{width}.txt"
    if os.environ.get("LLMB_UPDATE_SCREENS"):
        file.write_text(shown)
    assert shown == file.read_text()


@pytest.mark.parametrize("file", sorted(SCREENS.glob("*.txt")), ids=lambda file: file.stem)
def test_no_line_is_wider_than_the_terminal(file: Path) -> None:
    width = int(file.stem.rpartition(".")[2])
    lines = file.read_text().splitlines()
    wide = [line for line in lines if len(line) > width and not is_to_copy(line)]
    assert wide == []


def is_to_copy(line: str) -> bool:
    """Check whether a line contains a word without blanks, such as a path, that must not be broken."""
    return len(line.split()) <= 2


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("command", EXAMPLES)
def test_the_help_of_a_command_ends_with_an_example_that_works(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = show([command, "--help"], 80, monkeypatch)
    begin, _, example = shown.partition("Example:\n")
    assert begin
    words = shlex.split(example.replace("\\\n", "").replace("3n4fr", "aaaa1").replace("k7x2p", "aaaa2"))
    assert words[:2] == ["llmb", command]
    screen = Terminal()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, screen)
    assert execute(words[1:]) in (0, 1), screen.getvalue()


def test_every_command_has_an_example_and_a_group() -> None:
    names = {"help", "new-plugin", *(command.__name__ for command in COMMAND_FUNCTIONS)}
    assert set(EXAMPLES) == names
    assert {name for group in GROUPS.values() for name in group} == names
