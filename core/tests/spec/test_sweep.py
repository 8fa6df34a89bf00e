"""Lists are a sweep; ``--set`` overrides any key; an error names the key as it was written."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

import llmb


def test_lists_of_the_workload_make_their_product_the_last_varying_fastest(spec: Any) -> None:
    runs = spec.big(workload={"gpu_type": ["h100"], "dtype": ["bf16", "fp8"], "gpus": [64, 128]}).runs()
    assert [(run.dtype, run.gpus) for run in runs] == [("bf16", 64), ("bf16", 128), ("fp8", 64), ("fp8", 128)]


def test_recipes_of_one_framework_may_be_listed_with_its_options(spec: Any) -> None:
    both = {"recipe": ["maxtext/llama2-70b"], "gpus": [64, 128]}
    runs = spec.big(workload=both, framework={"config": {"remat_policy": "full"}}).runs()
    assert [run.options.config["remat_policy"] for run in runs] == ["full", "full"]
    assert "framework.config" in runs[0].differences


@pytest.mark.parametrize(
    "sweep",
    [
        '"parallelism.fsdp" = [64, 32]\n"framework.config.remat" = ["full", "none"]',
        'parallelism.fsdp = [64, 32]\nframework.config.remat = ["full", "none"]',
        'parallelism = { fsdp = [64, 32] }\nframework = { config = { remat = ["full", "none"] } }',
    ],
)
def test_sweep_takes_quoted_and_bare_dotted_keys_alike(spec: Any, sweep: str) -> None:
    spec.big()
    spec.write(f"{spec.file.read_text()}\n[sweep]\n{sweep}\n")
    assert [(run.parallelism.fsdp, run.options.config["remat"]) for run in spec.runs()] == [
        (64, "full"),
        (64, "none"),
        (32, "full"),
        (32, "none"),
    ]


def test_values_of_a_sweep_may_be_lists_themselves(spec: Any) -> None:
    runs = spec.usual(sweep={"measure.window": ["last", [5, 9]]}).runs()
    assert [run.window for run in runs] == ["last", (5, 9)]


def test_sweep_may_name_targets(spec: Any, write_targets: Any) -> None:
    write_targets('[a]\nscheduler = "local"\nworkdir = "/a"\n[b]\nscheduler = "local"\nworkdir = "/b"\n')
    spec.write('[workload]\nrecipe = "maxtext/llama2-tiny"\ngpu_type = "cpu"\ndtype = "fp32"\ngpus = 1\n')
    spec.write(spec.file.read_text() + '[sweep]\n"target.name" = ["a", "b"]\n')
    assert [placed.target.workdir for placed in spec.load().runs] == ["/a", "/b"]


def test_repeats_are_runs_of_their_own(spec: Any) -> None:
    runs = spec.usual(workload={"repeats": 3}).runs()
    assert [run.repeat for run in runs] == [1, 2, 3]


def test_one_override_needs_no_list(spec: Any) -> None:
    [placed] = llmb.load(spec.usual().file, overrides="workload.steps=60").runs
    assert placed.run.steps == 60


@pytest.mark.parametrize(
    ("tables", "overrides", "message"),
    [
        ({}, ["workload.repeats=1000000"], "the sweep has 1,000,000 runs"),
        ({"workload": {"repeats": 5001, "gpus": [1, 2]}}, [], "the sweep has 10,002 runs"),
        ({"sweep": {"workload.repeats": [9_999, 1], "env.N": ["a", "b"]}}, [], "the sweep has 20,000 runs"),
        ({"sweep": {f"env.N{n}": [*"0123456789"] for n in range(9)}}, [], "the sweep has 1,000,000,000 runs"),
    ],
)
def test_a_workload_of_too_many_runs_is_one_error_before_anything_is_expanded(
    spec: Any, tables: dict[str, Any], overrides: list[str], message: str
) -> None:
    [(key, error)] = spec.usual(**tables).errors(*overrides).items()
    assert (key, error.message, error.expected) == ("workload", message, "at most 10,000")


@pytest.mark.parametrize("repeats", [0, "many", 2**31, True])
def test_invalid_repeats_are_an_error_of_that_key(spec: Any, repeats: object) -> None:
    assert "workload.repeats" in spec.usual(workload={"repeats": repeats}).errors()


def test_an_error_names_the_value_of_a_list_by_its_index(spec: Any) -> None:
    found = spec.big(workload={"gpus": [64, 100], "dtype": ["bf16", "bf8"]}, sweep={"parallelism.tp": [1, 24]}).errors()
    assert set(found) == {"workload.dtype[1]", "sweep.parallelism.tp[1]"}
    assert set(spec.big(workload={"gpus": [64, 0]}).errors()) == {"workload.gpus[1]"}


@pytest.mark.parametrize(("values", "wrong"), [([1, True], 1), ([True, 1], 0)])
def test_equal_values_of_two_types_are_checked_each(spec: Any, values: list[object], wrong: int) -> None:
    assert [*spec.big(sweep={"parallelism.tp": values}).errors()] == [f"sweep.parallelism.tp[{wrong}]"]


def test_an_unknown_key_in_a_sweep_is_one_error_for_all_its_values(spec: Any) -> None:
    found = spec.usual(sweep={"parallelism.tpp": [1, 2], "target.lok": ["a", "b"]}).errors()
    assert {key: error.nearest for key, error in found.items()} == {
        "sweep.parallelism.tpp": "tp",
        "sweep.target.lok": "lock",
    }


@pytest.mark.parametrize(
    ("sweep", "keys"),
    [
        ({"env.RANK": ["1", "2"]}, ["sweep.env.RANK"]),
        ({"parallelism.tp": [1, 3]}, ["sweep.parallelism.tp[1]"]),
        ({"parallelism.tp": [3, 5]}, ["sweep.parallelism.tp[0]", "sweep.parallelism.tp[1]"]),  # two messages
    ],
)
def test_an_error_that_all_values_of_a_list_share_names_the_list(
    spec: Any, sweep: dict[str, Any], keys: list[str]
) -> None:
    assert [*spec.big(sweep=sweep).errors()] == keys


def test_an_error_that_all_runs_share_is_reported_once(spec: Any) -> None:
    found = spec.big(workload={"gpus": [64, 128, 256]}, parallelism={"tp": 24}).errors()
    assert [*found] == ["parallelism.tp"]


@pytest.mark.parametrize(
    ("sweep", "key", "message", "expected"),
    [
        ({"parallelism.tp": 3}, "sweep.parallelism.tp", "invalid value 3", "a list with at least one value"),
        ({"parallelism.tp": "3"}, "sweep.parallelism.tp", 'invalid value "3"', "a list with at least one value"),
        ({"parallelism.tp": []}, "sweep.parallelism.tp", "invalid value []", "a list with at least one value"),
        ({"tp": [1]}, "sweep.tp", "invalid key", 'a dotted key such as "parallelism.tp"'),
        (
            {"workload.gpus": [1]},
            "sweep.workload.gpus",
            "workload.gpus is both swept and set; remove one of them",
            None,
        ),
        (
            {"workload.gpus.x": [1]},
            "sweep.workload.gpus.x",
            "workload.gpus is not a table",
            'a dotted key such as "parallelism.tp"',
        ),
        ({"workload.steps": [0]}, "sweep.workload.steps[0]", "invalid value 0", "a positive integer"),
        ({"nothing.here": [0]}, "sweep.nothing.here", "unknown key", None),
        ({"target.none.here": [0, 1]}, "sweep.target.none.here", "unknown key", None),
        ({"target.none.here.at.all": [0]}, "sweep.target.none.here.at.all", "unknown key", None),
    ],
)
def test_an_invalid_sweep_is_an_error(
    spec: Any, sweep: dict[str, Any], key: str, message: str, expected: str | None
) -> None:
    error = spec.usual(sweep=sweep).errors()[key]
    assert error.message == message
    assert expected is None or error.expected == expected


@pytest.mark.parametrize(
    ("tables", "key", "text"),
    [
        (
            {"target": {"env": {"A": "1"}}, "sweep": {"target.env": [{"B": "1"}, {"B": "2"}]}},
            "sweep.target.env",
            "target.env.A is both swept and set, because target.env is swept; remove one of them",
        ),
        (
            {"sweep": {"target.env": [{"A": "1"}, {"B": "2"}], "target.env.A": ["3", "4"]}},
            "sweep.target.env.A",
            "target.env.A and target.env are both swept, and one contains the other; remove one of them",
        ),
        (
            {"sweep": {"target.env.A": ["3", "4"], "target.env": [{"A": "1"}, {"B": "2"}]}},
            "sweep.target.env",
            "target.env and target.env.A are both swept, and one contains the other; remove one of them",
        ),
    ],
)
def test_a_swept_table_replaces_no_key_silently(spec: Any, tables: dict[str, Any], key: str, text: str) -> None:
    [(found, error)] = spec.usual(**tables).errors().items()
    assert (found, error.message) == (key, text)


@pytest.mark.parametrize("tables", [{"workload": {"variant": [None]}}, {"sweep": {"workload.steps": [None, 5]}}])
def test_none_in_a_list_of_a_program_is_an_error(spec: Any, tables: dict[str, Any]) -> None:
    usual = tomllib.loads(spec.usual().file.read_text())
    with pytest.raises(llmb.SpecError, match="None is listed; expected values that TOML has"):
        llmb.load({name: {**usual.get(name, {}), **tables.get(name, {})} for name in {**usual, **tables}})


def test_an_empty_list_in_the_workload_is_an_error(spec: Any) -> None:
    assert spec.usual(workload={"gpus": []}).errors()["workload.gpus"].message == "invalid value []"


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("workload.steps=60", lambda run: run.steps == 60),
        ("workload.steps = 60", lambda run: run.steps == 60),
        ('workload."steps"=60', lambda run: run.steps == 60),
        ("workload.time_limit=2h", lambda run: run.time_limit_s == 7200),
        ('workload.time_limit="2h"', lambda run: run.time_limit_s == 7200),
        ("measure.window=[3, 7]", lambda run: run.window == (3, 7)),
        ("measure.window=last", lambda run: run.window == "last"),
        ("framework.config.remat=full", lambda run: run.options.config["remat"] == "full"),
        ("framework.config={a = 1}", lambda run: run.options.config["a"] == 1),
        ("env.LIST=1,2", lambda run: run.env["LIST"] == "1,2"),
        ("env.COLOUR=a#b", lambda run: run.env["COLOUR"] == "a#b"),
        ("framework.config.remat=5#b", lambda run: run.options.config["remat"] == "5#b"),
        ("env.EMPTY=", lambda run: run.env["EMPTY"] == ""),
        ("env.PAIR=a=b", lambda run: run.env["PAIR"] == "a=b"),
        ("env.LINES=1\n[env]", lambda run: run.env["LINES"] == "1\n[env]"),
    ],
)
def test_set_takes_a_dotted_key_and_a_value_in_toml_else_a_string(spec: Any, override: str, read: Any) -> None:
    [run] = spec.usual().runs(override)
    assert read(run)


def test_set_replaces_a_list(spec: Any) -> None:
    spec.big(workload={"gpus": [64, 128]})
    assert [run.gpus for run in spec.runs("workload.gpus=256")] == [256]
    assert [run.gpus for run in spec.runs("workload.gpus=[512, 64]")] == [512, 64]


@pytest.mark.parametrize("key", ['sweep."parallelism.fsdp"', "sweep.parallelism.fsdp"])
def test_set_replaces_a_sweep_however_either_is_written(spec: Any, key: str) -> None:
    spec.big(sweep={"parallelism.fsdp": [64, 32]})
    assert [run.parallelism.fsdp for run in spec.runs(f"{key}=[16]")] == [16]


def test_an_override_of_a_swept_key_is_an_error(spec: Any) -> None:
    spec.big(sweep={"parallelism.fsdp": [64, 32]})
    assert "sweep.parallelism.fsdp" in spec.errors("parallelism.fsdp=16")


def test_an_error_of_an_override_names_the_argument(spec: Any) -> None:
    found = spec.big().errors("workload.gpus=[64, 128]", "model.layer=3", "x.y=1")
    assert {key: error.file for key, error in found.items()} == {"model.layer": "overrides", "x": "overrides"}
    assert spec.errors("model.layer=3", "workload.gpus=0")["workload.gpus"].file == "overrides"
    assert spec.usual(workload={"steps": 0}).errors("workload.gpus=1")["workload.steps"].file == str(spec.file)
    assert spec.big().errors("workload.gpus=[64, 0]")["workload.gpus[1]"].file == "overrides"
    assert spec.errors("sweep.parallelism.tp=[24]")["sweep.parallelism.tp[0]"].file == "overrides"
    assert spec.big().errors("sweep.foo.bar=[1]")["sweep.foo.bar"].file == "overrides"


def test_a_number_for_a_string_is_shown_with_the_quotes_that_it_needs(spec: Any) -> None:
    found = spec.big(env={"B": 2}).errors("env.A=0.5", "env.C=[1]")
    assert found["env.A"].expected == """a string: `'env.A="0.5"'`"""
    assert found["env.B"].expected == "a string"
    assert found["env.C"].expected == 'a string, or a list in [sweep] under "env.C"'
    assert spec.runs('env.A="0.5"', "env.B=b")[0].env["A"] == "0.5"


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("workload.steps", "overrides: 'workload.steps' has no value; expected key=value"),
        ("=3", "overrides: '=3' has no key; expected key=value"),
        ("work load=3", "overrides: 'work load' is not a dotted key; expected table.key=value"),
        ("a..b=3", "overrides: 'a..b' is not a dotted key; expected table.key=value"),
        ("a\nb=3", "overrides: 'a\\nb' is not a dotted key; expected table.key=value"),
    ],
)
def test_an_invalid_override_is_one_line(spec: Any, override: str, text: str) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        spec.usual().load(override, "also wrong")
    first, second = str(raised.value).splitlines()
    assert first == text
    assert second == "overrides: 'also wrong' has no value; expected key=value"


@pytest.mark.parametrize(
    "value", ["9" * 5000, "0x" + "f" * 5000, "[" * 5000 + "]" * 5000], ids=["decimal", "hexadecimal", "nested"]
)
def test_a_value_beyond_what_can_be_read_is_one_line(spec: Any, value: str) -> None:
    [error] = spec.usual().errors(f"workload.steps={value}").values()
    assert (error.key, len(error.message) < 100) == ("workload.steps", True)
    spec.write(f"{spec.file.read_text()}\n[sweep]\n'workload.steps' = [{value}]\n")
    [error] = spec.errors().values()
    assert error.file == str(spec.file)


def test_values_that_look_alike_in_an_error_are_distinct(spec: Any) -> None:
    spec.big()
    long = "x" * 80
    spec.write(f"""{spec.file.read_text()}
    [sweep]
    "framework.config" = [{{ remat_policy = "full" }}, {{ remat_policy = "none" }}]
    "env.NAME" = ["{long}1", "{long}2"]
    """)
    assert len(spec.runs()) == 4


def test_a_missing_plugin_is_searched_once_for_all_runs(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[None] = []
    monkeypatch.setattr("llmb.plugins.find_plugins.find_misspelt_groups", lambda: searches.append(None) or ())
    counts = []
    for gpus in ([8], [*range(8, 808, 8)]):
        spec.big(workload={"recipe": "nosuch/tiny", "gpus": gpus})
        assert spec.errors()
        counts.append(len(searches))
        searches.clear()
    assert counts[0] == counts[1] > 0
