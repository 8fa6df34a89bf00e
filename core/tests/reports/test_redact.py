"""The time that redaction takes, and which of several names counts."""

from __future__ import annotations

import time

import pytest

from llmb.reports.redact import Redactor

LINES = b"step 10: loss 1.0, time 3 s on gpu0042\n"


def redactor_of(*names: str, ambiguous: frozenset[bytes] = frozenset()) -> Redactor:
    words = {name.encode(): f"host-{number}".encode() for number, name in enumerate(names, 1)}
    return Redactor(words=words, ambiguous=ambiguous)


def seconds_for(redactor: Redactor, data: bytes) -> float:
    redactor.redact(b"")  # compiles the patterns
    begin = time.process_time()
    redactor.redact(data)
    return time.process_time() - begin


def test_thousands_of_hosts_take_about_as_long_as_one() -> None:
    hosts = ["login", *(f"gpu{number:04}" for number in range(1, 4000))]
    one, many = (seconds_for(redactor_of(*names), 1000 * LINES) for names in (hosts[:1], hosts))
    assert many < 20 * one


def test_a_label_before_a_list_without_end_takes_no_long_search() -> None:
    redactor = redactor_of("h100", ambiguous=frozenset({b"h100"}))
    closed, torn = (
        seconds_for(redactor, 20_000 * line) for line in (b"host: [rank 0] 1: 2\n", b"host: [rank 0  1: 2\n")
    )
    assert torn < 5 * closed


def test_many_blank_lines_take_about_as_long_as_other_lines() -> None:
    redactor = redactor_of("h100", ambiguous=frozenset({b"h100"}))
    other, blank = (seconds_for(redactor, 20_000 * line) for line in (b"step 1 of 200\n", b"\n"))
    assert blank < 20 * other


def test_the_longest_name_counts_that_is_a_complete_word() -> None:
    redactor = redactor_of("gpu1", "gpu1.hpc", "gpu10", "gpu2", "g")
    text = b"gpu1 gpu1.hpc gpu10 gpu1.hpcx gpu1x gpu2.hpc g-1 g."
    assert redactor.redact(text) == b"host-1 host-2 host-3 host-1.hpcx gpu1x host-4.hpc g-1 host-5."


def test_a_list_of_hosts_may_have_several_lines() -> None:
    redactor = redactor_of("h100", "fp8", ambiguous=frozenset({b"h100", b"fp8"}))
    assert redactor.redact(b'host = [\n    "h100",\n    "fp8",\n]\n') == b'host = [\n    "host-1",\n    "host-2",\n]\n'


@pytest.mark.parametrize(
    "text",
    [
        'hosts: ["h100:29500", "fp8:29500"]\n',
        "nodes=[h100=1,fp8=2]\n",
        "nodelist: [h100 (rank 0), fp8 (rank 1)]\n",
        "hosts = [  # both\n    'h100', 'fp8'\n]\n",
        "hosts = [['h100', 'fp8']]\n",
    ],
)
def test_a_list_of_hosts_may_contain_more_than_names(text: str) -> None:
    redactor = redactor_of("h100", "fp8", ambiguous=frozenset({b"h100", b"fp8"}))
    assert redactor.redact(text.encode()).decode() == text.replace("h100", "host-1").replace("fp8", "host-2")


@pytest.mark.parametrize("line", ["\r 0: h100:7:8 [0] NCCL INFO x\n", "  host : h100\r\n", "\n\f host : h100 \v\n"])
def test_a_line_that_names_a_host_may_have_any_blanks_around_it(line: str) -> None:
    redactor = redactor_of("h100", ambiguous=frozenset({b"h100"}))
    assert redactor.redact(line.encode()).decode() == line.replace("h100", "host-1")
