"""The kinds of inputs: each writes files below a folder and returns a command line that reads them."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import tomli_w
from fuzz.mutations import EVIL, WEIRD, mutate_bytes, mutate_table

import llmb

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
LOGS = sorted((ROOT / "plugins").glob("*/tests/logs/*.log"))
FRAMEWORKS = ("maxtext", "megatron_bridge", "nemo_launcher")
RUN = "k3x9f-llama2-tiny"
FILTERS = ("recipe", "image", "gpus", "state", "verdict", "since", "until", "ratio")
VALUES = (
    *map(str, WEIRD),
    "*",
    "[",
    "64..",
    "9" * 30,
    "1..2",
    "a," * 2000,
    "*a" * 30_000,
    "999999999d",
    "9999-12-31",
    "\udcff",
)
HARMLESS = ("validate", "recipes", "metrics", "parse", "runs", "show", "logs", "plugins")
"""Commands that start nothing and connect to nothing."""

WORDS = (
    *("--help", "--json", "--csv", "--toml", "--framework", "--window", "--steps", "--set", "--target", "--gpu-type"),
    *("--dtype", "--gpus", "--step-time", "--tflops-per-gpu", "--full-names", "--raw", "--check", "--", "-", "-h"),
    *(
        "maxtext",
        "maxtext/llama2-70b",
        "h100",
        "bf16",
        "64",
        "2.5",
        "1:3",
        "last",
        RUN,
        "spec.toml",
        "a.b=1",
        "=",
        "\udcff",
    ),
)


def fuzz_spec(folder: Path, random: Random) -> list[str]:
    """Validate a damaged spec, or print its plan."""
    _write_spec(folder / "spec.toml", random)
    options = [f"--set={random.choice(('workload.gpus', 'env.A', 'target', 'x', 'sweep'))}={random.choice(WEIRD)}"]
    command = random.choice((["validate"], ["run", "--dry-run"]))
    return [*command, str(folder / "spec.toml"), *_some((*options, "--json"), random)]


def fuzz_target(folder: Path, random: Random) -> list[str]:
    """Validate a spec with a target of a damaged targets file."""
    target = {"scheduler": "slurm", "host": "eos", "workdir": "/lustre/llmb", "account": "a", "env": {"A": "1"}}
    targets = {"eos": target, "box": {"scheduler": "local", "container": {"ipc": "host"}}}
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "llmb/targets.toml"
    file.parent.mkdir(parents=True)
    _write_table(file, targets, random)
    spec = {**_example(EXAMPLES[0]), "target": {"name": "eos"}}
    (folder / "spec.toml").write_text(tomli_w.dumps(spec))
    name = random.choice(("eos", "box", "bax", EVIL))
    command = random.choice((["validate"], ["run", "--dry-run"]))
    return [*command, str(folder / "spec.toml"), f"--target={name}"]


def fuzz_log(folder: Path, random: Random) -> list[str]:
    """Parse a damaged log, alone or in a directory."""
    data = random.choice(LOGS).read_bytes()[: random.choice((2000, 20_000, 200_000))]
    for name in ("0.log", "1.log")[: random.randint(1, 2)]:
        (folder / name).write_bytes(mutate_bytes(data, random))
    window = random.choice(("last", "1:3", "5:2", "35:44"))
    path = random.choice((folder / "0.log", folder))
    options = _some(("--json", "--csv", f"--window={window}", "--steps=10"), random)
    return ["parse", str(path), "--framework", random.choice(FRAMEWORKS), *options]


def fuzz_record(folder: Path, random: Random) -> list[str]:
    """List or show runs, one of which has a damaged record."""
    runs = Path(os.environ["LLMB_HOME"]) / "runs"
    for name in (RUN, "abcde-other"):
        (runs / name / "logs").mkdir(parents=True)
        for path, data in record_files().items():
            (runs / name / path).write_bytes(data)
    file = runs / RUN / random.choice([*record_files()])
    if random.random() < 0.1:  # something else than a file
        file.unlink()
        random.choice((file.mkdir, lambda: file.symlink_to(file), lambda: file.symlink_to("/dev/null")))()
    elif file.suffix == ".json" and random.random() < 0.7:
        file.write_text(json.dumps(mutate_table(json.loads(file.read_bytes()), random)))
    elif file.suffix == ".toml" and random.random() < 0.7:
        _write_table(file, tomllib.loads(file.read_text()), random)
    else:
        file.write_bytes(mutate_bytes(file.read_bytes(), random))
    if random.random() < 0.1:
        (runs / RUN).rename(runs / os.fsdecode(b"k3x9f\xff\x1b[31m"))
    filtered = ["runs", *(f"{random.choice(FILTERS)}={random.choice(VALUES)}" for _ in range(random.randint(1, 3)))]
    lists = (["runs"], ["runs", "--json"], [each.replace("\0", "") for each in filtered])
    return random.choice((*lists, ["show", "k3x9f"], ["show", RUN, "--json"], ["logs", "k3x9f"]))


def fuzz_command_line(folder: Path, random: Random) -> list[str]:
    """Give a command random words."""
    _write_spec(folder / "spec.toml", random)
    words = [random.choice((*WORDS, *map(str, WEIRD))) for _ in range(random.randint(0, 6))]
    arguments = [str(folder / word) if word == "spec.toml" else word for word in words]
    return [random.choice((*HARMLESS, random.choice(WORDS), EVIL)), *(each.replace("\0", "") for each in arguments)]


KINDS: Mapping[str, Callable[[Path, Random], list[str]]] = {
    "spec": fuzz_spec,
    "target": fuzz_target,
    "log": fuzz_log,
    "record": fuzz_record,
    "command line": fuzz_command_line,
}
"""What is random, and the function that makes it."""


@cache
def record_files() -> Mapping[str, bytes]:
    """Return the files of a valid record."""
    address = "maxtext/llama2-70b"
    measured = llmb.metrics(address, gpu_type="h100", dtype="bf16", gpus=64, step_time_s=2.5)
    workload = {"recipe": address, "gpu_type": "h100", "dtype": "bf16", "gpus": 64, "steps": 50}
    provenance = {"created": "2026-11-22T10:00:00+00:00", "sweep": {"parallelism.tp": 2}, "repeat": 1, "repeats": 2}
    result = {
        "metrics": measured.as_dict(),
        "verdict": "pass",
        "reason": "within the tolerance",
        "failure": {"cause": "out of memory", "evidence": "CUDA", "line": 3, "remedy": "use less"},
        "notes": ["a note"],
        "refused": False,
        "steps_done": 50,
        "window_complete": True,
    }
    ended = {"state": "ended", "job_id": "7", "exit_code": 0, "cause": "", "reason": ""}
    events = [
        {"time": 1.0, "event": "planned", "state": "planned"},
        {"time": 2.0, "event": "submitting", "state": "submitting"},
        {"time": 3.0, "event": "queued", "state": "queued", "job_id": "7"},
        {"time": 4.0, "event": "running", "state": "running"},
        {"time": 5.0, "event": "job_ended", "status": ended},
        {"time": 6.0, "event": "ended", "state": "completed"},
    ]
    return {
        "run.toml": tomli_w.dumps({"workload": workload, "provenance": provenance}).encode(),
        "events.jsonl": "".join(json.dumps(event) + "\n" for event in events).encode(),
        "result.json": json.dumps(result).encode(),
        "logs/train.0.log": LOGS[0].read_bytes()[:5000],
    }


@cache
def _example(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text())


def _write_spec(file: Path, random: Random) -> None:
    _write_table(file, _example(random.choice(EXAMPLES)), random)


def _write_table(file: Path, table: dict[str, Any], random: Random) -> None:
    """Write a table as TOML, damaged either as a table or as text."""
    if random.random() < 0.7:
        with suppress(ValueError, TypeError):  # TOML cannot hold the value
            file.write_text(tomli_w.dumps(mutate_table(table, random)), encoding="utf-8")
            return
    file.write_bytes(mutate_bytes(tomli_w.dumps(table).encode(), random))


def _some(words: tuple[str, ...], random: Random) -> list[str]:
    return [word for word in words if random.random() < 0.3]
