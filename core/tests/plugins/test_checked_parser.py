"""Log parsers of plugins: errors and wrong results name the plugin, the log and the line."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb import LineParser, LogParser, Notice, PluginError, Step
from llmb.plugins import slow_hooks
from llmb.plugins.checked_parser import CheckedParser
from llmb.plugins.find_plugins import PluginEntry
from llmb.plugins.guard import Guard

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
    """A parser that calls ``act`` for a line without a step number."""

    needles = (b"step",)
    first_step = 7

    def __init__(self, act: Any) -> None:
        super().__init__()
        self.act = act

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        return [Step(step=int(line[5:])) if line[5:].isdigit() else self.act()]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: float("0.50.5"), "ValueError: could not convert string to float: '0.50.5'"),
        (
            lambda: Step(step=10**23),
            "ValueError: invalid number 100000000000000000000000 of a step; expected an integer of at least 0",
        ),
        (lambda: Step(step="3"), "ValueError: invalid number '3' of a step"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="done"), "ValueError: 'kind' must be in ('total steps', "),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="total steps", value="50"), "ValueError: invalid value '50'; expected an integer"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="total steps"), "ValueError: invalid value None; expected the number of steps"),
        (lambda: Notice(kind="nan", attempt=0.5), "ValueError: invalid attempt 0.5; expected an integer"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="failed", text=b"died"), "TypeError: invalid text b'died'; expected a str"),  # type: ignore[arg-type]  # it is wrong
        (lambda: Notice(kind="failed", text="\udc80"), "UnicodeEncodeError: "),
        (lambda: (1, 2.0), "TypeError: (1, 2.0) is neither a Step nor a Notice"),
        (lambda: Step, "TypeError: <class 'llmb.values.steps.Step'> is neither a Step nor a Notice"),
    ],
)
def test_an_error_names_the_plugin_the_log_and_the_line_and_keeps_earlier_steps(act: Any, message: str) -> None:
    parser = CheckedParser(Odd(act), GUARD)
    assert len(parser.feed(b"step 1\nstep x\nstep 2\n", "rank0.log")) == 1
    with pytest.raises(PluginError) as raised:
        parser.feed(b"step 3\n", "rank1.log")
    [fault] = raised.value.faults
    assert fault.file == "rank0.log"
    assert fault.message.startswith(f"{FAILED}{message}")
    assert fault.message.endswith("in the line 'step x'")


class Returning:
    """A parser that does not inherit from a class of llmb."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def feed(self, block: bytes, source: str = "") -> Any:
        return self.result

    close = feed


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "TypeError: 'NoneType' object is not iterable"),
        (["step 1"], "TypeError: 'step 1' is neither a Step nor a Notice"),
        (
            [Step(step=1, time_s="0.5")],
            r"TypeError: invalid value '0.5' of a step; expected a float in Step\(step=1, time_s='0.5',",
        ),  # type: ignore[arg-type]  # it is wrong
        (
            [Step(step=1, other_values={"lr": None})],  # type: ignore[dict-item]  # it is wrong
            "TypeError: invalid value None of a step; expected a float in Step",
        ),
        ([Step(step=1, loss=Fraction(1, 2))], r"TypeError: invalid value Fraction\(1, 2\) of a step; .* in Step"),  # type: ignore[arg-type]  # it is wrong
        ([Step(step=1, other_values={"lr": 10**400})], "OverflowError: int too large to convert to float in Step"),
        ([Step(step=1, other_values={3: 0.5})], "TypeError: invalid name 3 of a value; expected a str in Step"),  # type: ignore[dict-item]  # it is wrong
        ([Step(step=1, rank="0")], "ValueError: invalid number '0' of a step; expected an integer of at least 0"),  # type: ignore[arg-type]  # it is wrong
        ([Step(step=1, rank=-1)], "ValueError: invalid number -1 of a step; expected an integer of at least 0"),
        ([Step(step=1, mean_of=2.5)], "ValueError: invalid number 2.5 of a step; .* in Step"),  # type: ignore[arg-type]  # it is wrong
        ([Step(step=1, attempt="1")], "ValueError: invalid number '1' of a step; .* in Step"),  # type: ignore[arg-type]  # it is wrong
        ([Step(step=1, attempt=-1)], "ValueError: invalid number -1 of a step; .* in Step"),
    ],
)
def test_a_result_of_a_wrong_type_is_an_error_of_the_plugin(result: Any, message: str) -> None:
    parser = CheckedParser(Returning(result), GUARD)
    for find in (lambda: parser.feed(b"x"), lambda: parser.feed(b"y", "log")):
        with pytest.raises(PluginError, match=re.escape(FAILED) + message):
            find()
    assert parser.first_step is None


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"first_step": "1"}, "ValueError: invalid first_step '1'; expected an integer of at least 0"),
        ({"first_step": -1}, "ValueError: invalid first_step -1; expected an integer of at least 0"),
        ({"printed_every": 0}, "ValueError: invalid printed_every 0; expected an integer of at least 1"),
        ({"printed_every": None}, "ValueError: invalid printed_every None"),
        ({"end_texts": "done"}, "ValueError: invalid end_texts 'done'; expected a tuple of str, such as ('done',)"),
        ({"end_texts": (b"done",)}, "ValueError: invalid end_texts (b'done',); expected a tuple of str"),
        ({"first_step": property(lambda _: dict[str, int]()["x"])}, "KeyError: 'x'"),
    ],
)
def test_an_attribute_of_a_wrong_type_is_an_error_of_the_plugin(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=re.escape(FAILED + message)):
        CheckedParser(type("Odd", (Returning,), attributes)([]), GUARD)


class Unready(LineParser):
    """A parser that forgets to initialize its base class."""

    def __init__(self) -> None:
        pass


class WithoutNeedles(LineParser):
    """A parser that reads no line."""

    def read_line(self, line: bytes) -> Iterable[Step]:
        return ()


@pytest.mark.parametrize(
    ("parser", "message"),
    [
        (Unready, "TypeError: __init__() does not call super().__init__()"),
        (WithoutNeedles, "ValueError: no needles, so no line would be read; expected a tuple of bytes"),
    ],
)
def test_an_incomplete_line_parser_is_an_error_of_the_plugin(parser: type[LineParser], message: str) -> None:
    with pytest.raises(PluginError, match=re.escape(FAILED + message)):
        CheckedParser(parser(), GUARD)


@pytest.mark.parametrize("base", ["LineParser", "LogParser", "object"])
def test_a_parser_needs_neither_a_first_step_nor_a_base_class(
    site: Any, run_llmb: Any, tmp_path: Path, base: str
) -> None:
    site.install("llmb-own", files={"llmb_own.py": OWN.format(base=base)}, entry_points=OWN_POINTS)
    (tmp_path / "a.log").write_bytes(b"anything")
    found = run_llmb.json("parse", tmp_path / "a.log", "--framework", "own")
    assert [(step["step"], step["time_s"]) for step in found["steps"]] == [(1, 2.5)]


class Slow(LineParser):
    """A parser with a pattern that backtracks."""

    needles = (b"step",)

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        re.search(rb"step(x+x+)+y", line)
        return [Step(step=1)]


def test_a_parser_that_takes_too_long_is_stopped_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_hooks, "PARSER_LIMIT_S", 0.2)
    parser = CheckedParser(Slow(), GUARD)
    assert parser.feed(b"step 1\nstepxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nstep 2\n") == [Step(step=1)]
    with pytest.raises(PluginError) as raised:
        parser.close()
    assert str(raised.value) == (
        f"{FAILED}TooSlowError: more than 0.2 s for one block of the log "
        "in the line 'stepxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
    )
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replace the clock of the time limit by one that parsers advance."""
    clock = Clock()
    monkeypatch.setattr("llmb.logs.time_limit.time", SimpleNamespace(monotonic=lambda: clock.now_s))
    return clock


class Clock:
    """A clock that only `advance` moves."""

    now_s = 0.0

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


class Waiting(LineParser):
    """A parser that needs 4 s for each line."""

    needles = (b"step",)

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        self.clock.advance(4)
        return [Step(step=int(line.split()[1]))]


def test_a_parser_in_another_thread_is_stopped_between_two_lines(clock: Clock) -> None:
    """The threads of asynchronous sessions receive no signals."""
    parser = CheckedParser(Waiting(clock), GUARD)
    block = b"".join(b"step %d\n" % number for number in range(1, 50))
    with ThreadPoolExecutor(1) as thread:
        assert len(thread.submit(parser.feed, block).result()) == 3
        with pytest.raises(PluginError, match=r"more than 10 s for one block of the log in the line 'step 3'"):
            thread.submit(parser.close).result()
        fast = CheckedParser(Waiting(clock), GUARD)
        assert thread.submit(fast.feed, b"step 1\nstep 2\n").result() == [Step(step=1), Step(step=2)]


def test_a_parser_of_its_own_is_stopped_after_a_slow_block(clock: Clock) -> None:
    class Own(LogParser):
        def feed(self, block: bytes, source: str = "") -> list[Step | Notice]:
            clock.advance(11)
            return []

        def close(self) -> list[Step | Notice]:
            return []

    with ThreadPoolExecutor(1) as thread, pytest.raises(PluginError, match=r"more than 10 s for one block"):
        thread.submit(CheckedParser(Own(), GUARD).feed, b"step 1\n").result()


def test_an_alarm_of_the_program_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(slow_hooks, "PARSER_LIMIT_S", 5)
    before = signal.signal(signal.SIGALRM, lambda number, _frame: calls.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 60)
        CheckedParser(Slow(), GUARD).feed(b"step 1\n")
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
