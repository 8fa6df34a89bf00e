"""A plugin's log parser that fails is a fault that names the plugin, also where a step is read later."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from llmb import LineParser, Notice, PluginError, Step, StepSeries
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

    def glance(self, line: bytes) -> tuple[int, bytes] | None:
        return (int(line[5:]), line) if self.numbered(line) else None

    @staticmethod
    def numbered(line: bytes) -> bool:
        return line[5:].isdigit()

    def read_step(self, text: bytes) -> Step:
        self.act()
        return Step(step=int(text[5:]))

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        if self.numbered(line):
            return [Step(step=int(line[5:]))]
        return [self.act()]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: float("0.50.5"), "ValueError: could not convert string to float: '0.50.5'"),
        (lambda: Step(step=10**23), f"ValueError: {10**23} is not the number of a step"),
        (lambda: Step(step="3"), "ValueError: '3' is not the number of a step"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="done"), "WrongWordError: Notice.kind is 'done', where one of 'total steps', "),  # type: ignore[arg-type]  # it is wrong
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
        ([Notice(kind="total steps", value="50")], "ValueError: value is '50', where a whole number from 0 on is due"),  # type: ignore[arg-type]  # it is wrong
        ([Notice(kind="total steps")], "ValueError: value is None, where a whole number from 0 on is due in Notice"),
        ([Notice(kind="nan", attempt=0.5)], "ValueError: attempt is 0.5, where"),  # type: ignore[arg-type]  # it is wrong
        ([Notice(kind="failure", text=b"died")], "TypeError: its text is no str in Notice"),  # type: ignore[arg-type]  # it is wrong
        ([Notice(kind="failure", text="\udc80")], "UnicodeEncodeError: "),
    ],
)
def test_what_it_finds_that_is_no_step_is_its_fault(answer: Any, told: str) -> None:
    parser = CheckedParser(Answers(answer), GUARD)
    for find in (lambda: parser.feed(b"x"), lambda: parser.feed(b"y", "log")):
        with pytest.raises(PluginError, match=re.escape(FAILED) + told):
            find()
    assert parser.first_step is None


@pytest.mark.parametrize("seen", [("1", b"step"), (None, b"step"), (-1, b"step"), (1 << 63, b"step"), (1, None)])
def test_what_it_sees_at_a_glance_is_the_number_of_a_step_and_a_text(seen: Any) -> None:
    class Glancing(Odd):
        def glance(self, line: bytes) -> tuple[int, bytes] | None:
            return None if line == b"step 0" else seen  # type: ignore[no-any-return]  # it is wrong

    parser = CheckedParser(Glancing(None), GUARD)
    with pytest.raises(PluginError, match=re.escape(FAILED)):
        [*parser.feed(b"step 0\nstep\nstep\n"), *parser.feed(b"step 1\n"), *parser.close()]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"first_step": "1"}, "ValueError: first_step is '1', where a whole number from 0 on is due"),
        ({"first_step": -1}, "ValueError: first_step is -1, where a whole number from 0 on is due"),
        ({"printed_every": 0}, "ValueError: printed_every is 0, where a whole number from 1 on is due"),
        ({"printed_every": None}, "ValueError: printed_every is None, where"),
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


def test_a_step_that_is_read_later_names_the_plugin_and_those_read_before_stay() -> None:
    readable = [1, 2]
    parser = CheckedParser(Odd(readable.pop), GUARD)
    series = StepSeries(first_step=parser.first_step)
    series.add(parser.feed(b"step 1\nstep 2\nstep 3\nstep 4\n"))
    assert (series.first_step, series.count) == (7, 4)
    with pytest.raises(PluginError, match=r"IndexError: pop from empty list in the line 'step 3'"):
        series.read_all()
    assert [step.step for step in series.steps] == [1, 2]
