"""Contract tests of a framework's log parser, on the logs beside the tests."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmb.logs.failures.signature_search import SignatureSearch
from llmb.testing.golden_logs import check_log, is_complete
from llmb.testing.log_texts import StepLine, cut, garbled, long_lines, read, step_lines, with_filler
from llmb.testing.plugin_checks import PluginContract, fail
from llmb.values.errors import LlmbError
from llmb.values.steps import LogParser, Notice, Step

MAX_BYTES = 256 << 10
"""The beginning of a log in which tests search the first step."""

BYTES_BEFORE, PART_BYTES = 1 << 10, 16 << 10
"""The part of a log that tests cut and damage: bytes before the first step, and in all."""

STEPS, BETWEEN, MAX_CALLS = 500, 19, 5
"""Steps of a log, the lines after each step, and the function calls that each of these lines may cost on average."""

LONG_LINE, LONG_LINE_S = 16 << 10, 2.0
"""The length of a long line in bytes, and the time that it may take."""


class LogContract(PluginContract):
    """Tests of the log parser of a framework."""

    kind = "framework"

    @property
    def logs(self) -> list[Path]:
        """The logs in the folder ``logs`` beside the file of the tests. Fail the test if there are no logs."""
        folder = self.folder / "logs"
        found = sorted(folder.glob("*.log"))
        if not found:
            fail(f"no log in {folder}; add the log of a short run as {folder.name}/NAME.log")
        return found

    def parser(self) -> LogParser:
        """Return a new parser of the framework."""
        parser: LogParser = self.plugin.parse_log(run=None)
        return parser

    def _texts(self) -> Iterator[tuple[Path, bytes, list[StepLine]]]:
        """Yield a part of each log that has steps, from shortly before the first step, with the lines of the steps."""
        for log in self.logs:
            text = log.read_bytes()
            with suppress(LlmbError):  # test_golden_logs_parse reports it
                lines = step_lines(self.parser(), text[:MAX_BYTES])
                first = max(0, lines[0].start - BYTES_BEFORE) if lines else len(text)
                text = text[text.rfind(b"\n", 0, first) + 1 :][:PART_BYTES]
                if lines := step_lines(self.parser(), text):
                    yield log, text, lines

    def test_golden_logs_parse(self) -> None:
        """Each log gives the result in its expected.toml."""
        for log in self.logs:
            try:
                problem = check_log(log, self.plugin_name, self.registry)
            except LlmbError as error:
                problem = str(error)
            if problem:
                fail(f"{log.name}: {problem}")

    def test_complete_logs_have_no_cause(self) -> None:
        """The log of a complete run contains no text that diagnose() returns as the cause of a failure."""
        with suppress(LlmbError):  # test_causes_can_be_read and test_golden_logs_parse report it
            primary = [each for each in self.plugin.diagnose() if each.primary and not each.survivable]
            search = SignatureSearch(primary)
            for log in self.logs:
                if is_complete(log, self.plugin_name, self.registry) and (hit := search.find(log, warnings=False)):
                    fail(
                        f"{log.name} is the log of a complete run, but contains {hit.signature.needle!r} of the cause "
                        f"{hit.signature.cause!r}; choose a text that only failed runs print, or set survivable"
                    )

    def test_missing_steps_are_explained(self) -> None:
        """explain_missing_steps() returns a text for any first lines, also for none."""
        for lines in ([], *(log.read_text(errors="replace").splitlines()[:1] for log in self.logs)):
            try:
                self.plugin.explain_missing_steps(lines=lines)
            except LlmbError as error:
                fail(f"{error}; the lines are {lines!r}")

    def test_chunking_does_not_matter(self) -> None:
        """The steps are the same if the log is cut anywhere, because llmb reads a growing log in blocks."""
        for log, text, lines in self._texts():
            last = lines[min(4, len(lines) - 1)]
            head = text[: last.start + len(last.line) + 200]
            whole = read(self.parser(), [head])
            if read(self.parser(), [head]) == whole:  # else test_parsers_are_independent fails
                self._check_cuts(log, head, whole)

    def _check_cuts(self, log: Path, text: bytes, whole: Sequence[Step | Notice]) -> None:
        positions = st.lists(st.integers(0, len(text)), min_size=1, max_size=6).map(sorted)

        @settings(
            max_examples=30, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
        )
        @given(positions)
        def check(cuts: list[int]) -> None:
            if read(self.parser(), cut(text, cuts)) != whole:
                fail(f"{log.name}: steps differ if the log is cut at {cuts}; llmb.LineParser handles cut lines")

        check()

    def test_truncation_never_raises(self) -> None:
        """A log that ends anywhere raises nothing, and gives no value that the complete log does not have."""
        for log, text, lines in self._texts():
            known = _by_number(read(self.parser(), [text]))
            line = lines[min(2, len(lines) - 1)]
            ends = [line.start + count for count in range(len(line.line))]
            ends += [each.start + len(each.line) // 2 for each in lines[:10]]
            for end in ends:
                self._check_end(log, text[:end], known)

    def _check_end(self, log: Path, text: bytes, known: dict[tuple[Any, ...], list[Step]]) -> None:
        try:
            found = read(self.parser(), [text])
        except LlmbError as error:
            fail(f"{log.name}, cut off after {len(text)} bytes: {error}")
        for steps in _by_number(found).values():
            step = steps[-1]
            if not any(_agrees(step, each) for each in known.get(_number(step), ())):
                tail = text[-60:].decode(errors="replace")
                fail(
                    f"{log.name}: a log that ends with {tail!r} gives {step}, so digits are missing; "
                    "override read_torn_line()"
                )

    def test_garbled_logs_never_raise(self) -> None:
        """Damaged lines raise nothing: processes that write at the same time tear lines and join them."""
        for log, _, lines in self._texts():
            for line in garbled([each.line for each in lines[:20]], 200):
                try:
                    read(self.parser(), [line])
                except LlmbError as error:
                    fail(f"{log.name}: {error}; the line is {line[:200]!r}")

    def test_parsers_are_independent(self) -> None:
        """Each log has a parser of its own."""
        for log, text, _ in self._texts():
            whole = read(self.parser(), [text])
            first = self.parser()
            first.feed(text[: len(text) // 2])
            if read(self.parser(), [text]) != whole:
                fail(f"{log.name}: parse_log() must return a new parser for each log")

    def test_parsing_is_fast(self) -> None:
        """Lines without a step cost few function calls, because most lines of a log have no step."""
        for log, _, lines in self._texts():
            texts = [with_filler([each.line for each in lines], STEPS, between) for between in (BETWEEN, 0)]
            all_lines, steps_alone = (_count_calls(lambda text=text: self.parser().feed(text)) for text in texts)
            if (calls := (all_lines - steps_alone) / (STEPS * BETWEEN)) > MAX_CALLS:
                fail(
                    f"{log.name}: {calls:.0f} function calls for each line without a step (at most {MAX_CALLS}); "
                    "choose needles that occur only in step lines"
                )

    def test_long_lines_cost_linear_time(self) -> None:
        """A long line takes a short time, because llmb follows logs while it drives other runs."""
        for log, _, lines in self._texts():
            for line in long_lines(lines[-1].line, LONG_LINE):
                if not _ends_in_time(lambda line=line: read(self.parser(), [line])):
                    fail(
                        f"{log.name}: one line of 16 kB took {LONG_LINE_S:.0f} s, because a pattern backtracks; "
                        f"make the pattern atomic; the line begins with {line[:80]!r}"
                    )


def _number(step: Step) -> tuple[Any, ...]:
    return step.step, step.rank


def _by_number(found: Sequence[Step | Notice]) -> dict[tuple[Any, ...], list[Step]]:
    steps: dict[tuple[Any, ...], list[Step]] = {}
    for each in found:
        if isinstance(each, Step):
            steps.setdefault(_number(each), []).append(each)
    return steps


def _agrees(step: Step, whole: Step) -> bool:
    """Check whether every value of a step of a truncated log is that of the complete log."""
    names = ("time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu")
    values = [(getattr(step, name), getattr(whole, name)) for name in names]
    values += [(value, whole.other_values.get(name)) for name, value in step.other_values.items()]
    return all(value is None or value == full or value != value for value, full in values)


def _count_calls(call: Any) -> int:
    """Return how many functions a call calls, those in C included. The number does not depend on the machine."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls


def _ends_in_time(call: Any) -> bool:
    """Call a function. Return False if it takes too long, in time of this process: other processes do not count."""
    start_s = time.process_time()
    try:
        call()
    except LlmbError as error:  # of the guard, which also interrupts a pattern that would not end
        if time.process_time() - start_s < LONG_LINE_S:
            fail(f"the parser cannot read a line of 16 kB: {error}")
    return time.process_time() - start_s < LONG_LINE_S
