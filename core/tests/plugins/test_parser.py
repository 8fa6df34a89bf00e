"""A plugin's log parser that fails is a fault that names the plugin, also where a step is read later."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from llmb import LineParser, Notice, PluginError, Step
from llmb.plugins.find import PluginEntry
from llmb.plugins.guard import Guard
from llmb.plugins.parser import CheckedParser

GUARD = Guard(PluginEntry(name="odd", kind="framework", value="odd:Plugin", distribution="llmb-odd", version="1.0"))
FAILED = "framework plugin 'odd' (llmb-odd 1.0): the log parser of parse_log() failed: "

OWN_POINTS = {"llmb.frameworks": {"own": "llmb_own:Plugin"}}
OWN = """
import attrs
from llmb import FrameworkHooks, LineParser, LogParser, Step, hookimpl

@attrs.frozen
class Options:
    pass

class Log({base}):
    def feed(self, block, source=""):
        return ()

    def close(self):
        assert not isinstance(self, LogParser) or self.first_step is None
        return [Step(step=1, time_s=2.5)]

class Plugin(FrameworkHooks[Options]):
    options = Options

    @hookimpl
    def parse_log(self):
        return Log()

    @hookimpl
    def build_job(self, run):
        raise NotImplementedError
"""


class Odd(LineParser):
    """Does with a line what its test tells it to."""

    needles = (b"step",)
    first_step = 7

    def __init__(self, act: Any) -> None:
        super().__init__()
        self.act = act

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        return [Step(step=int(line[5:])) if line[5:].isdigit() else self.act()]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: float("0.50.5"), "ValueError: could not convert string to float: '0.50.5'"),
        (lambda: Step(step=10**23), "OverflowError: int too big to convert"),
        (lambda: Step(step="3"), "TypeError: 'str' object cannot be interpreted as an integer"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="done"), "WrongWordError: Notice.kind is 'done', where one of 'total steps', "),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="total steps", value="50"), "ValueError: invalid value '50'; expected an integer"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="total steps"), "ValueError: invalid value None; expected the number of steps"),
        (lambda: Notice(kind="nan", attempt=0.5), "ValueError: invalid attempt 0.5; expected an integer"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="failure", text=b"died"), "TypeError: invalid text b'died'; expected a str"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="failure", text="\udc80"), "UnicodeEncodeError: "),
    ],
)
def test_what_it_raises_names_the_plugin_the_log_and_the_line_and_hides_no_step_before_it(act: Any, told: str) -> None:
    parser = CheckedParser(Odd(act), GUARD)
    assert len(parser.feed(b"step 1\nstep x\nstep 2\n", "rank0.log")) == 1
    with pytest.raises(PluginError) as raised:
        parser.feed(b"step 3\n", "rank1.log")
    [fault] = raised.value.faults
    assert fault.file == "rank0.log"
    assert fault.message.startswith(f"{FAILED}{told}")
    assert fault.message.endswith("in the line 'step x'")


class Answers:
    """A parser without the core's help."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def feed(self, block: bytes, source: str = "") -> Any:
        return self.answer

    close = feed


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "TypeError: 'NoneType' object is not iterable"),
        (["step 1"], "TypeError: 'step 1' is neither a Step nor a Notice"),
        ([Step(step=1, time_s="0.5")], r"TypeError: must be real number, not str in Step\(step=1, time_s='0.5',"),  # type: ignore[arg-type]  # it is wrong
        ([Step(step=1, figures={"lr": None})], "TypeError: must be real number, not NoneType in Step"),  # type: ignore[dict-item]  # it is wrong
        ([Step(step=1, figures={3: 0.5})], "TypeError: sequence item 0: expected str instance, int found in Step"),  # type: ignore[dict-item]  # it is wrong
        ([Step(step=1, mean_of=2.5)], "TypeError: 'float' object cannot be interpreted as an integer in Step"),  # type: ignore[arg-type]  # it is wrong
        ([Step(step=1, attempt="1")], "TypeError: 'str' object cannot be interpreted as an integer in Step"),  # type: ignore[arg-type]  # it is wrong
        ([Step(step=1, attempt=-1)], "OverflowError: can't convert negative .* in Step"),
    ],
)
def test_what_it_finds_that_is_no_step_is_its_fault(answer: Any, told: str) -> None:
    parser = CheckedParser(Answers(answer), GUARD)
    for find in (lambda: parser.feed(b"x"), lambda: parser.feed(b"y", "log")):
        with pytest.raises(PluginError, match=re.escape(FAILED) + told):
            find()
    assert parser.first_step is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"first_step": "1"}, "ValueError: invalid first_step '1'; expected an integer of at least 0"),
        ({"first_step": -1}, "ValueError: invalid first_step -1; expected an integer of at least 0"),
        ({"printed_every": 0}, "ValueError: invalid printed_every 0; expected an integer of at least 1"),
        ({"printed_every": None}, "ValueError: invalid printed_every None"),
        ({"first_step": property(lambda _: {}["x"])}, "KeyError: 'x'"),
    ],
)
def test_what_it_says_of_its_steps_is_its_fault_too(said: dict[str, Any], told: str) -> None:
    with pytest.raises(PluginError, match=re.escape(FAILED) + told):
        CheckedParser(type("Saying", (Answers,), said)([]), GUARD)


@pytest.mark.parametrize("base", ["LineParser", "LogParser", "object"])
def test_a_parser_may_know_no_first_step_and_need_not_inherit_anything(
    site: Any, run_llmb: Any, tmp_path: Path, base: str
) -> None:
    site.install("llmb-own", files={"llmb_own.py": OWN.format(base=base)}, entry_points=OWN_POINTS)
    (tmp_path / "a.log").write_bytes(b"anything")
    found = run_llmb.json("parse", tmp_path / "a.log", "--framework", "own")
    assert [(step["step"], step["time_s"]) for step in found["steps"]] == [(1, 2.5)]
