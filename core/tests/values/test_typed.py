"""Values check themselves: a value of a wrong type fails where it is constructed, which is inside the plugin's hook."""

from __future__ import annotations

import pydoc
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import llmb
from llmb.values.types.check_types import decode, encode, value_type

PHASE: dict[str, Any] = {"name": "train", "command": ("true",)}
JOB: dict[str, Any] = {"id": "j", "directory": "/j", "phases": (llmb.Phase(**PHASE),), "time_limit_s": 60}
JOB |= {"nodes": 1, "tasks_per_node": 1, "gpus_per_node": 0}
SCRIPT: dict[str, Any] = {"id": "s", "directory": "/s", "text": "true"}
TASK: dict[str, Any] = {"key": "k", "kind": "toy data", "work": "true", "check": "true"}

REPOSITORY = {"name": "nemo", "url": "https://git.example/nemo", "commit": "abc123"}


@pytest.mark.parametrize(
    ("make", "usual", "wrong", "message"),
    [
        (
            llmb.Phase,
            PHASE,
            {"command": "python train.py"},
            'Phase.command: invalid value "python train.py"; expected a',
        ),
        (llmb.Phase, PHASE, {"command": ("python", 3)}, "Phase.command[1]: invalid value 3; expected a string"),
        (llmb.Phase, PHASE, {"command": ()}, "Length of 'command' must be >= 1"),
        (llmb.Phase, PHASE, {"name": "../train"}, 'Phase.name: invalid value "../train"; expected letters, digits and'),
        (llmb.Phase, PHASE, {"name": ""}, 'Phase.name: invalid value ""'),
        (llmb.Phase, PHASE, {"ranks": "every"}, 'Phase.ranks: invalid value "every"; expected "all" or "first" or'),
        (llmb.Phase, PHASE, {"env": {"A B": "1"}}, 'Phase.env.A B: invalid value "A B"; expected the name of an env'),
        (llmb.Phase, PHASE, {"env": {"A": 1}}, "Phase.env.A: invalid value 1; expected a string"),
        (llmb.Phase, PHASE, {"env": ["A=1"]}, 'Phase.env: invalid value ["A=1"]; expected a table'),
        (llmb.Phase, PHASE, {"outputs": ["log"]}, 'Phase.outputs[0]: invalid value "log"; expected an absolute path'),
        (llmb.Phase, PHASE, {"measured": 1}, "Phase.measured: invalid value 1; expected true or false"),
        (llmb.Job, JOB, {"phases": ()}, "Job.phases: no phase"),
        (llmb.Job, JOB, {"phases": JOB["phases"] * 2}, "Job.phases: several phases are named train; expected distinct"),
        (llmb.Job, JOB, {"phases": ("train",)}, 'Job.phases[0]: invalid value "train"; expected a Phase'),
        (
            llmb.Job,
            JOB,
            {"phases": JOB["phases"][0]},
            "Job.phases: invalid value a Phase; expected a list, each a Phase",
        ),
        (llmb.Job, JOB, {"nodes": 0}, "Job.nodes: invalid value 0; expected a positive integer"),
        (llmb.Job, JOB, {"nodes": 1.0}, "Job.nodes: invalid value 1.0; expected a positive integer"),
        (
            llmb.Job,
            JOB,
            {"gpus_per_node": -1},
            "Job.gpus_per_node: invalid value -1; expected an integer of at least 0",
        ),
        (llmb.Job, JOB, {"directory": "j"}, 'Job.directory: invalid value "j"; expected an absolute path'),
        (llmb.Job, JOB, {"files": {"a.sh": ""}}, 'Job.files.a.sh: invalid value "a.sh"; expected an absolute path'),
        (llmb.Job, JOB, {"id": ""}, 'Job.id: invalid value ""'),
        (llmb.Job, JOB, {"time_limit_s": None}, "Job.time_limit_s: invalid value None"),
        (
            llmb.Job,
            JOB,
            {"environment": "venv"},
            'Job.environment: invalid value "venv"; expected an Environment',
        ),
        (llmb.Mount, {"source": "/a", "target": "/b"}, {"target": "b"}, 'Mount.target: invalid value "b"'),
        (
            llmb.Environment,
            {},
            {"secrets": "HF_TOKEN"},
            'Environment.secrets: invalid value "HF_TOKEN"; expected a list',
        ),
        (llmb.Environment, {}, {"secrets": ["HF-TOKEN"]}, 'Environment.secrets[0]: invalid value "HF-TOKEN"'),
        (
            llmb.Environment,
            {},
            {"base": "ubuntu:24.04"},
            'Environment.base: invalid value "ubuntu:24.04"; expected an Image or a Venv',
        ),
        (llmb.Image, {"ref": "a"}, {"ref": "-v"}, 'Image.ref: invalid value "-v"; expected an image such as'),
        (llmb.Repository, REPOSITORY, {"url": "--upload-pack=x"}, "Repository.url: invalid value"),
        (llmb.Repository, REPOSITORY, {"commit": "-x"}, 'Repository.commit: invalid value "-x"; expected a word'),
        (llmb.Job, JOB, {"directory": "/a\nb"}, r'Job.directory: invalid value "/a\nb"; expected an absolute path'),
        (
            llmb.Image,
            {"ref": "a"},
            {"digest": "sha256:1"},
            'Image.digest: invalid value "sha256:1"; expected "sha256:"',
        ),
        (llmb.Task, TASK, {"work": 3}, "Task.work: invalid value 3"),
        (llmb.Task, TASK, {"key": "a/b"}, 'Task.key: invalid value "a/b"'),
        (llmb.Dataset, {}, {"tasks": [TASK["key"]]}, 'Dataset.tasks[0]: invalid value "k"'),
        (llmb.Script, SCRIPT, {"text": b"true"}, "Script.text: invalid value"),
        (
            llmb.Script,
            SCRIPT,
            {"logs": {"train": "/s/a.log"}},
            'Script.logs.train: invalid value "/s/a.log"; expected a',
        ),
        (llmb.Script, SCRIPT, {"logs": {"train": ["a.log"]}}, 'Script.logs.train[0]: invalid value "a.log"'),
        (
            llmb.Accelerator,
            {"name": "npu", "gpus_per_node": 8},
            {"peak_flops": {"bf16": "989e12"}},
            'Accelerator.peak_flops.bf16: invalid value "989e12"; expected a peak in FLOP/s, such as 989e12',
        ),
        (llmb.Nsys, {"command": ["nsys"]}, {"ranks": 0}, "Nsys.ranks: invalid value 0; expected a positive integer"),
    ],
)
def test_a_wrong_value_fails_where_it_is_constructed(
    make: Callable[..., object], usual: dict[str, Any], wrong: dict[str, Any], message: str
) -> None:
    make(**usual)
    with pytest.raises(ValueError) as raised:  # noqa: PT011  # the message is compared below
        make(**{**usual, **wrong})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: llmb.JobStatus(state="every"), 'JobStatus.state: invalid value "every"; expected "absent" or'),
        (lambda: llmb.Notice(kind="every"), "'kind' must be in"),
    ],
)
def test_another_word_is_rejected_with_the_valid_words(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_all_wrong_items_of_a_value_are_reported_together() -> None:
    with pytest.raises(ValueError, match=r"Phase\.command\[0\]: .*; Phase\.command\[2\]: "):
        llmb.Phase(name="train", command=(1, "a", None))  # type: ignore[arg-type]  # that is what is tested


@attrs.frozen(kw_only=True)
class Inner:
    limit: llmb.PositiveInt = 1
    _hidden: str = "x"


@attrs.frozen(kw_only=True)
class Options:
    word: str
    ratio: float = 0.5
    time_limit: llmb.Duration | None = None
    inner: Inner = Inner()
    each: tuple[Inner, ...] = ()
    pair: tuple[int, str] | None = None
    words: set[str] = attrs.field(factory=set)
    anything: Any = None
    table: dict[str, int | bool] = attrs.field(factory=dict)


def test_a_table_is_decoded_by_the_types_of_a_class() -> None:
    table = {
        "word": "a",
        "ratio": 1,
        "time_limit": "1m30s",
        "inner": {"limit": 3, "_hidden": "y"},
        "each": [{}, {"limit": 2}],
        "pair": [1, "b"],
        "words": ["a", "b", "a"],
        "anything": [{"a": [1]}],
        "table": {"one": 1, "yes": True},
    }
    options, errors = decode(table, Options, "framework")
    assert errors == ()
    assert options == Options(
        word="a",
        ratio=1.0,
        time_limit=90,
        inner=Inner(limit=3, hidden="y"),
        each=(Inner(), Inner(limit=2)),
        pair=(1, "b"),
        words={"a", "b"},
        anything=(llmb.FrozenMap({"a": (1,)}),),
        table=llmb.FrozenMap({"one": 1, "yes": True}),  # type: ignore[arg-type]  # tables are frozen
    )
    assert encode(options)["inner"] == {"limit": 3, "_hidden": "y"}


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        ({}, ["framework.word: required key is missing; expected a string"]),
        ({"word": "a", "ratio": True}, ["framework.ratio: invalid value true; expected a finite number"]),
        ({"word": "a", "pair": [1]}, ["framework.pair: invalid value [1]; expected a list of 2, each an integer"]),
        ({"word": "a", "each": [{}, {"limit": 0}]}, [
            "framework.each[1].limit: invalid value 0; expected a positive integer"
        ]),
        ({"word": "a", "table": {"a": 1, "b": "c"}}, [
            'framework.table.b: invalid value "c"; expected an integer or true or false'
        ]),
        ({"word": "a", "anything": {"a": [None]}}, [
            "framework.anything.a[0]: invalid value None; expected a string, a number, true or false, a list or a table"
        ]),
        (
            {"wrod": 1, "ratio": "1"},
            [
                "framework.word: required key is missing; expected a string",
                'framework.ratio: invalid value "1"; expected a finite number',
                "framework.wrod: unknown key; expected one of word, ratio, time_limit, inner, each, pair, words, "
                "anything, table (did you mean 'word'?)",
            ],
        ),
        ("a", ['framework: invalid value "a"; expected a table']),
    ],
)  # fmt: skip
def test_all_errors_of_a_table_are_returned_with_their_keys(table: Any, lines: list[str]) -> None:
    options, errors = decode(table, Options, "framework")
    assert (options, [*map(str, errors)]) == (None, lines)


def test_an_integer_of_a_union_stays_an_integer() -> None:
    assert isinstance(value_type(float | int).convert(3), int)


def test_help_shows_the_types_of_a_constructor() -> None:
    shown = pydoc.plain(pydoc.render_doc(llmb.Phase.__init__))
    assert "Annotated[str, letters, digits and . _ + -]" in shown
    assert "measured: bool" in shown
