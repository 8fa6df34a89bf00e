"""`LineParser`: lines in bytes that are cut anywhere."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb.logs.steps import line_parser
from llmb.logs.steps.line_parser import LineParser
from llmb.logs.steps.step_series import StepSeries
from llmb.values.steps import LogParser, Notice, Step


class ToyParser(LineParser):
    """Parser of ``step N took S s, loss L``, and of ``of N`` for the total."""

    needles = (b"step ", b"of ")

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        for number, time_s, loss in re.findall(rb"step (\d+) took ([\d.]+) s(?:, loss ([\w.]+))?", line):
            yield Step(step=int(number), time_s=float(time_s), loss=float(loss) if loss else None)
        for total in re.findall(rb"of (\d+)", line):
            yield Notice(kind="total steps", value=int(total), text=self.source)


class Echo(ToyParser):
    """Parser that returns each line as a notice."""

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        return [Notice(kind="finished", text=line.decode())]


def parse(*blocks: bytes, parser: LogParser | None = None) -> list[Step | Notice]:
    parser = parser or ToyParser()
    return [item for block in blocks for item in parser.feed(block)] + list(parser.close())


def times(*blocks: bytes) -> list[tuple[int, float | None]]:
    return [(item.step, item.time_s) for item in parse(*blocks) if isinstance(item, Step)]


def log_of(numbers: Iterable[int], end: bytes = b"\n") -> bytes:
    return b"".join(b"noise\nstep %d took 1.5 s" % number + end for number in numbers)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(edges)]


class Pairs(LineParser):
    """Parser that returns a step for each needle. Its time is the length of the text before."""

    needles = (b"needle",)

    def read_line(self, line: bytes) -> list[Step | Notice]:
        self.count = getattr(self, "count", 0) + 1
        return [Step(step=self.count, time_s=float(len(self.text_before())))]


@given(places=st.lists(st.integers(min_value=0), max_size=30), ending=st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_the_text_before_a_line_is_the_same_however_the_bytes_are_cut(places: list[int], ending: bytes) -> None:
    lines = [
        b"needle",
        b"",
        b"a" * 7,
        b"needle",
        b"needle",
        b"b" * 90,
        b"",
        b"needle and more",
        b"c",
        b"d" * 5,
        b"needle",
    ]
    data = ending.join(lines) + ending
    before = [data[: match.start()].replace(b"\r", b"\n").rfind(b"\n") + 1 for match in re.finditer(b"needle", data)]
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    parser = Pairs()
    found = [item for start, stop in itertools.pairwise(edges) for item in parser.feed(data[start:stop])]
    found += parser.close()
    assert [step.time_s for step in found if isinstance(step, Step)] == before


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_lines_end_with_lf_crlf_or_cr(end: bytes) -> None:
    assert times(log_of(range(3), end)) == [(0, 1.5), (1, 1.5), (2, 1.5)]


def test_a_bar_that_is_drawn_again_is_another_line() -> None:
    assert times(b"\rstep 1 took 2 s\rstep 1 took 3 s\nnoise\n") == [(1, 2), (1, 3)]


def test_the_block_that_ends_a_line_returns_its_step() -> None:
    parser = ToyParser()

    assert list(parser.feed(b"step 1 took 1")) == []
    assert list(parser.feed(b".5 s\nstep")) == [Step(step=1, time_s=1.5)]
    assert list(parser.feed(b" 2 took 2 s\r\n")) == [Step(step=2, time_s=2)]


def test_close_returns_the_step_of_a_line_without_an_end() -> None:
    parser = ToyParser()

    assert list(parser.feed(b"step 1 took 1.5 s")) == []
    assert list(parser.close()) == [Step(step=1, time_s=1.5)]
    assert list(parser.close()) == []


def test_close_returns_a_step_that_was_held_back() -> None:
    assert [number for number, _ in times(log_of([*range(5), 0]))] == [0, 1, 2, 3, 4, 0]


def test_a_parser_may_skip_a_torn_line() -> None:
    class Careful(ToyParser):
        def read_torn_line(self, line: bytes) -> Iterable[Step | Notice]:
            return ()

    assert parse(b"step 1 took 1 s\nstep 2 took 1", parser=Careful()) == [Step(step=1, time_s=1)]


def test_lines_without_a_needle_are_never_read() -> None:
    class Reader(ToyParser):
        def read_line(self, line: bytes) -> Iterable[Step | Notice]:
            assert b"noise" not in line
            return super().read_line(line)

    assert len(parse(log_of(range(100)), parser=Reader())) == 100


def test_a_line_with_several_needles_is_read_once() -> None:
    assert parse(b"step 1 of 9\nof 9, step 2\nstep 3\n", parser=Echo()) == [
        Notice(kind="finished", text="step 1 of 9"),
        Notice(kind="finished", text="of 9, step 2"),
        Notice(kind="finished", text="step 3"),
    ]


def test_a_parser_may_set_other_needles_after_each_line() -> None:
    class Alternating(ToyParser):
        """Parser that searches for the end of a step after each step."""

        needles: Sequence[bytes] = (b"begin ",)

        def read_line(self, line: bytes) -> Iterable[Step | Notice]:
            self.needles = (b"step ",) if b"begin" in line else (b"begin ",)
            return super().read_line(line)

    log = b"".join(b"step 7 left out\nbegin\nbegin again\nstep %d took 1.5 s\n" % number for number in range(5000))

    found = [item.step for item in parse(log, parser=Alternating()) if isinstance(item, Step)]
    assert found == [*range(5000)]


def test_a_notice_may_name_the_log_that_it_is_from() -> None:
    parser = ToyParser()

    assert list(parser.feed(b"of 9\n", "rank0.log")) == [Notice(kind="total steps", value=9, text="rank0.log")]


def test_a_parser_knows_the_label_of_the_line_that_it_reads() -> None:
    class Labels(Echo):
        def read_line(self, line: bytes) -> Iterable[Step | Notice]:
            return [Notice(kind="finished", text=self.label.decode())]

    found = parse(b"0: step 1\n[default3]:step 1\nstep 1", parser=Labels())

    assert [item.text for item in found if isinstance(item, Notice)] == ["0: ", "[default3]:", ""]


def test_each_source_has_its_own_unfinished_line_and_its_own_numbering() -> None:
    parser, series = ToyParser(), StepSeries()
    for number in range(20):
        line = b"step %d took 1.5 s\n" % number
        series.add(parser.feed(line[:7], "rank0"))
        series.add(parser.feed(line, "rank1"))
        series.add(parser.feed(line[7:], "rank0"))
    series.add(parser.feed(log_of(range(20)), "rank2"))

    assert series.attempt == 0
    assert [step.step for step in series.steps] == list(range(20))


@pytest.mark.parametrize("label", ["%d: ", "  %d: ", "[default%d]:", "[rank%d]: ", "[1,%d]<stdout>:", "10.0.0.%d: ",
                                   "node-%d: ", "tail-of-role/%d ", "3: [default%d]:", "worker-%d  | ",
                                   "Nov 02 10:00:00 [rank%d]: ", "[pod/a-%d/main] 2026-11-02T10:00:00Z "])  # fmt: skip
def test_labelled_ranks_are_distinguished(label: str) -> None:
    ranks = [[f"{label % rank}step {number} took 1.5 s\n" for number in range(20)] for rank in (0, 1)]
    found = parse("".join(ranks[0] + ranks[1]).encode())

    assert {step.attempt for step in found if isinstance(step, Step)} == {0}


class OwnLabels(LineParser):
    """Parser of ``r1> step N``: a rank in a form that is no label."""

    needles = (b"> step ",)

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        if found := re.search(rb"r(\d+)> step (\d+)", line):
            yield Step(step=int(found[2]), time_s=1.0 + int(found[1]), rank=int(found[1]))


@pytest.mark.parametrize("prefix", ["", "2026-11-28T00:00:00 ", "[pod/train/main] ", "[default0]:"])
def test_ranks_that_the_parser_reads_are_distinguished(prefix: str) -> None:
    """A rank that is behind another one, and prints each step on two lines, does not begin a new run."""
    ahead = [f"{prefix}r1> step {number}\n" for number in (1, 1, 2, 2, 3, 3)]
    both = [f"{prefix}r{rank}> step {n + 3 * rank}\n" for n in range(1, 17) for _ in range(2) for rank in (0, 1)]
    series = StepSeries()
    series.add(parse("".join(ahead + both).encode(), parser=OwnLabels()))
    assert series.runs == 1
    assert {step.time_s for step in series.steps if step.step <= 16} == {1.0}


def test_steps_behind_a_time_have_the_rank_of_their_label() -> None:
    found = parse(b"\xef\xbb\xbf[rank1]: step 4 took 1.5 s\nNov 02 10:00:00 [rank2]: step 4 took 1.5 s\n")

    assert [step.rank for step in found if isinstance(step, Step)] == [1, 2]


@pytest.mark.parametrize(
    "prefix", ["", "10:00:%02d ", "INFO: ", "%d.25: ", "I0317 10:00:%02d.224641 9 trainer.py:1] ", "# "]
)
def test_a_prefix_that_is_no_label_does_not_hide_a_new_run(prefix: str) -> None:
    text = "".join(
        f"{prefix % number if '%' in prefix else prefix}step {number} took 1.5 s\n" for number in [*range(9)] * 2
    )

    assert [step.attempt for step in parse(text.encode()) if isinstance(step, Step)] == [0] * 9 + [1] * 9


def test_a_loss_that_is_nan_survives_and_is_noted_once_a_run() -> None:
    once = b"step 1 took 1 s, loss nan\nstep 2 took 1 s, loss nan\nstep 3 took 1 s, loss 1\nstep 4 took 1 s\n"
    found = parse(once + once)

    losses = [item.loss for item in found if isinstance(item, Step)]
    assert [loss is not None and math.isnan(loss) for loss in losses] == [True, True, False, False] * 2
    assert [item.text for item in found if isinstance(item, Notice)] == ["the loss of step 1 is NaN"] * 2


class Norms(ToyParser):
    """Parser of step lines that may contain a norm that is NaN."""

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        yield from super().read_line(line)
        if b"norm nan" in line:
            yield Notice(kind="nan", text="a norm")


@pytest.mark.parametrize(
    ("again", "nan"),
    [([0, 1, 2], True), ([0], True), ([], False)],  # a new run, perhaps one, and none
)
def test_a_notice_beside_the_first_step_of_a_new_run_belongs_to_that_run(again: list[int], nan: bool) -> None:
    series = StepSeries()
    series.add(parse(log_of(range(9)), log_of(again).replace(b" s\n", b" s, norm nan\n", 1), parser=Norms()))

    assert series.nan is nan
    assert series.count == (3 if len(again) > 1 else 9)


def test_a_notice_of_an_earlier_run_does_not_count_for_the_last_run() -> None:
    parser, series = Norms(), StepSeries()
    for source in ("rank 0", "rank 1"):
        first = log_of(range(9)).replace(b" s\n", b" s, norm nan\n", 1)
        series.add(parser.feed(first + log_of(range(3)), source))
    series.add(parser.close())

    assert (series.attempt, series.count, series.nan) == (1, 3, False)


def test_a_line_of_any_length_takes_bounded_memory_and_hides_no_step() -> None:
    parser, mib = ToyParser(), bytes(1 << 20)
    found: list[Step | Notice] = []
    for block in (b"step 1 took 1 s\n", *[mib] * 64, b"step 2 took 2 s", *[mib] * 64, b"\nstep 3 took 3 s\n"):
        found += parser.feed(block)
        assert (
            sum(len(log.rest) for log in vars(parser)["_LineParser__logs"].values())
            <= line_parser.BYTES_BEFORE + line_parser.BYTES_AFTER
        )

    assert [item.step for item in found if isinstance(item, Step)] == [1, 2, 3]


PIECES = st.lists(
    st.sampled_from(
        [
            b"step ",
            b"7",
            b" took ",
            b"1.5",
            b" s",
            b", loss nan",
            b"\n",
            b"\r",
            b"\r\n",
            b"x" * 30,
            b"of ",
            b"3: ",
            b"step 4 took 2 s\n",
            b"[default1]:",
            b"st",
            b"ep 5 took 1 s\r",
        ]
    ),
    max_size=60,
)


@given(pieces=PIECES, places=st.lists(st.integers(0, 500), max_size=12))
@pytest.mark.parametrize(("before", "after"), [(4096, 16384), (8, 40)], ids=["real limits", "small limits"])
def test_the_result_does_not_depend_on_block_sizes(
    before: int, after: int, pieces: Sequence[bytes], places: Sequence[int]
) -> None:
    data = b"".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_parser, "BYTES_BEFORE", before)
        patch.setattr(line_parser, "BYTES_AFTER", after)
        for parser in (ToyParser, Echo):
            whole = repr(parse(data, parser=parser()))

            assert repr(parse(*cut(data, places), parser=parser())) == whole
            assert repr(parse(*cut(data, range(len(data))), parser=parser())) == whole


def test_a_long_line_is_read_only_around_the_needle() -> None:
    found = parse(b"a" * 99_999 + b"step " + b"b" * 99_999 + b"\n", parser=Echo())

    assert [len(item.text) for item in found if isinstance(item, Notice)] == [
        line_parser.BYTES_BEFORE + line_parser.BYTES_AFTER
    ]


@given(pieces=PIECES)
def test_each_line_gives_its_own_steps(pieces: Sequence[bytes]) -> None:
    data = b"".join(pieces)
    expected = [
        (int(number), float(time_s))
        for line in re.split(rb"[\r\n]", data)
        for number, time_s in re.findall(rb"step (\d+) took ([\d.]+) s", line)
    ]

    assert set(times(data)) == set(expected)
