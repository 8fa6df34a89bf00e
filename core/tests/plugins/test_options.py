"""The options class of a plugin: types, defaults and validators are checked, and all errors are reported together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, time
from textwrap import indent
from typing import Any

import pytest

Refusals = Callable[..., list[str]]


@pytest.fixture
def refusals(plugins: Any, run_llmb: Any) -> Refusals:
    """Return the errors that ``llmb validate`` prints for a spec with this [framework] table."""

    def read(**options: Any) -> list[str]:
        file = plugins.spec(options=options)
        return [line.removeprefix(f"llmb: {file}: ") for line in run_llmb("validate", file).stderr.splitlines()]

    return read


def test_options_with_validators_and_without_defaults_are_checked(plugins: Any, refusals: Refusals) -> None:
    plugins.install(
        "framework",
        options="word: str = attrs.field(validator=attrs.validators.in_(['a', 'b']))\nsizes: list[int] = [1]",
    )
    assert refusals(word="a", sizes=[1, 2]) == []
    assert refusals(wrod="a") == ["framework.wrod: unknown key; expected one of word, sizes (did you mean 'word'?)"]
    assert refusals() == ["framework.word: required key is missing; expected a string"]
    assert refusals(word="a", sizes=[1, "2"]) == ['framework.sizes[1]: invalid value "2"; expected an integer']
    assert refusals(word="a", sizes="12") == ['framework.sizes: invalid value "12"; expected a list, each an integer']
    assert refusals(word="c") == ["framework.word: 'word' must be in ['a', 'b'] (got 'c')"]


def test_an_option_of_a_type_that_no_table_has_is_named(plugins: Any, refusals: Refusals) -> None:
    plugins.install("framework", options="scale: list[complex] = []")
    [error] = refusals(scale=[1])
    assert error.endswith(": options failed: TypeError: Options.scale: llmb cannot check values of the type complex")


VALIDATORS = """
def _host(instance, field, value):
    if " " in value:
        raise SpecError(Fault(message=f"invalid value {format_value(value)}", expected="a host"))

def _sizes(instance, field, value):
    raise SpecError(*(Fault(message="is odd", key=name) for name, size in value.items() if size % 2))

@attrs.frozen
class Inner:
    host: str = attrs.field(default="", validator=_host)
"""
VALIDATED = """
host: str = attrs.field(default="", validator=_host)
sizes: dict[str, int] = attrs.field(factory=dict, validator=_sizes)
inner: Inner = Inner()
deep: list[Inner] = []
"""


def test_what_validators_reject_is_reported_in_one_pass_each_with_its_key(plugins: Any, refusals: Refusals) -> None:
    plugins.install("framework", before=VALIDATORS, options=VALIDATED)
    assert refusals(inner={"host": "c d"}, deep=[{}, {"host": "e\nf "}]) == [
        'framework.inner.host: invalid value "c d"; expected a host',
        'framework.deep[1].host: invalid value "e\\nf "; expected a host',
    ]
    assert refusals(host="a b", sizes={"p": 1, "q": 2, "r": 3}) == [
        'framework.host: invalid value "a b"; expected a host',
        "framework.sizes.p: is odd",
        "framework.sizes.r: is odd",
    ]
    assert refusals(host="a b", sizes="p", inner={"host": "c d"}, more=1) == [
        'framework.sizes: invalid value "p"; expected a table, each value an integer',
        'framework.inner.host: invalid value "c d"; expected a host',
        "framework.more: unknown key; expected one of host, sizes, inner, deep",
        'framework.host: invalid value "a b"; expected a host',
    ]


def test_a_date_is_no_option_of_a_framework(plugins: Any, refusals: Refusals) -> None:
    plugins.install("framework", before="import typing", options="more: dict[str, typing.Any] = {}")
    assert refusals(more={"a": [1, "x", {"b": 2.5}], "c": {"d": True}}) == []
    expected = "expected a string, a number, true or false, a list or a table"
    assert refusals(more={"a": [1, {"b": date(2024, 5, 1)}], "c": {"d": time(12, 30)}}) == [
        f"framework.more.a[1].b: invalid value 2024-05-01; {expected}",
        f"framework.more.c.d: invalid value 12:30:00; {expected}",
    ]


def test_the_errors_of_a_shared_check_are_false_for_a_valid_run(plugins: Any, run_llmb: Any) -> None:
    check = 'if errors := unsupported_degrees(run, ["pp"], why="it has no stages"):\n    raise SpecError(*errors)'
    plugins.install(
        "framework", "@hookimpl\ndef prepare_env(self, run):\n" + indent(f"{check}\nreturn Environment()", "    ")
    )
    spec = plugins.spec()
    assert [run["gpus"] for run in run_llmb.json("run", spec, "--dry-run")["runs"]] == [1]
    done = run_llmb("validate", spec, "--set", "parallelism.pp=2", "--set", "workload.gpus=2")
    assert "parallelism.pp: 2 is not supported: it has no stages; expected 1" in done.stderr
