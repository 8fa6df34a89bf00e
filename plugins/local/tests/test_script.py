"""The bash of a job, letter by letter: golden/*.sh is what these jobs become."""

from __future__ import annotations

import difflib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llmb import Dataset, Environment, FrozenMap, Image, Job, Phase, SpecError, Target, Task, Venv
from llmb_local.plugin import Local, LocalOptions
from llmb_local.script import lock_word

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "LLMB_UPDATE_GOLDEN"


def job(**changes: Any) -> Job:
    usual = {
        "id": "abcde-tiny",
        "directory": "/work/runs/abcde-tiny",
        "phases": (Phase(name="train", command=("python", "train.py")),),
        "nodes": 1,
        "tasks_per_node": 1,
        "gpus_per_node": 0,
        "time_limit_s": 1800,
    }
    return Job(**usual | changes)


JOBS = {
    "one-phase": job(),
    "three-phases": job(
        tasks_per_node=8,
        environment=Environment(base=Venv(lock="one==1\n", python=">=3.12"), secrets=("HF_TOKEN",)),
        env=FrozenMap({"FLAGS": "--a --b=1", "ODD": 'it\'s $(touch x)\n"two" lines'}),
        phases=(
            Phase(name="prof", command=("nsys", "profile", "train"), measured=False, outputs=("/work/a report",)),
            Phase(name="convert", command=("convert", "it's"), ranks="first", outputs=("/work/pgle",)),
            Phase(name="perf", command=("train", "$(touch x)"), env=FrozenMap({"XLA_FLAGS": "--x=1 --y=2"})),
        ),
    ),
}


def target(**options: Any) -> Target[LocalOptions]:
    return Target(scheduler="local", workdir="/work", options=LocalOptions(**options))


@pytest.mark.parametrize("name", JOBS)
def test_the_script_is_the_golden_one(name: str) -> None:
    text = Local().build_job(JOBS[name], target()).text
    file = GOLDEN / f"{name}.sh"
    if os.environ.get(UPDATE):
        file.write_text(text)
    golden = file.read_text().splitlines(keepends=True)
    changed = "".join(difflib.unified_diff(golden, text.splitlines(keepends=True), str(file), "now"))
    assert not changed, f"\n{changed}\nif this is meant: {UPDATE}=1 pytest {__file__}"


def test_no_golden_script_is_left_over() -> None:
    assert {file.stem for file in GOLDEN.glob("*.sh")} == set(JOBS)


@pytest.mark.parametrize("name", JOBS)
def test_bash_understands_it(name: str) -> None:
    checked = subprocess.run(["bash", "-n", str(GOLDEN / f"{name}.sh")], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_rank_of_every_phase_has_a_log_of_its_own() -> None:
    logs = Local().build_job(JOBS["three-phases"], target()).logs
    folder = "/work/runs/abcde-tiny/logs"
    assert list(logs) == ["prof", "convert", "perf"]
    assert logs["perf"] == tuple(f"{folder}/perf.{{attempt}}.{rank}.log" for rank in range(8))
    assert logs["convert"] == (f"{folder}/convert.{{attempt}}.0.log",)


@pytest.mark.parametrize(
    ("lock", "word"),
    [
        ("$HOME/.cache/llmb-$HOSTNAME.lock", '"$HOME"/.cache/llmb-"$HOSTNAME".lock'),
        ("/tmp/it's $(touch x)", "'/tmp/it'\"'\"'s $(touch x)'"),
        ("/tmp/$HOMELESS", "'/tmp/$HOMELESS'"),
    ],
)
def test_only_two_variables_of_a_lock_are_expanded(lock: str, word: str) -> None:
    assert lock_word(lock) == word


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"nodes": 2}, "the job needs 2 nodes, and the local scheduler has one")],
)
def test_what_it_cannot_do_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Local().build_job(job(**changes), target())


def test_another_machine_is_refused() -> None:
    elsewhere: Target[LocalOptions] = Target(scheduler="local", host="node1", workdir="/work", options=LocalOptions())
    with pytest.raises(SpecError, match=r"target.host is 'node1'"):
        Local().build_job(job(), elsewhere)


def test_an_image_is_refused() -> None:
    with pytest.raises(SpecError, match=r"the image nvcr.io/x:1, and this version"):
        Local().prepare_env(Environment(base=Image(ref="nvcr.io/x:1")), target())


def test_without_an_environment_nothing_is_prepared() -> None:
    assert Local().prepare_env(Environment(), target()) == ()


def test_the_ranks_of_all_nodes_of_a_data_set_s_job_are_on_this_one() -> None:
    made = Task(key="a", kind="data", work=job(nodes=2, tasks_per_node=3), check="true")
    fetched = Task(key="b", kind="data", work="true", check="true")

    folded, left = Local().prepare_dataset(Dataset(tasks=(made, fetched)), target()).tasks
    assert isinstance(folded.work, Job)
    assert (folded.work.nodes, folded.work.tasks_per_node) == (1, 6)
    assert left == fetched
