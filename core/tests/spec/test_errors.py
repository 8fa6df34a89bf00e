"""Every kind of error in a spec: the value, its key, the expected value, and the nearest valid name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import llmb

EXPECT_POSITIVE = "a positive integer"
EXPECT_AT_MOST = "an integer of at most 2147483647"
EXPECT_WINDOW = '"last" or a list of two integers such as [{}, {}]'
EXPECT_FRACTION = "a number above 0 and below 1, such as 0.05"


@pytest.mark.parametrize(
    ("table", "key", "nearest"),
    [
        ("workload", "gpu_typ", "gpu_type"),
        ("parallelism", "tpp", "tp"),
        ("model", "layer", "layers"),
        ("framework", "confg", "config"),
        ("profile", "start_stepp", "start_step"),
        ("measure", "windows", "window"),
        ("target", "lok", "lock"),
        ("target", "gpus_per_nod", "gpus_per_node"),
        ("target", "quite_another", None),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_of_its_table(
    spec: Any, table: str, key: str, nearest: str | None
) -> None:
    tool = {"profile": {"tool": "nsys"}} if table == "profile" else {}
    error = spec.usual(**{**tool, table: {**tool.get(table, {}), key: 1}}).errors()[f"{table}.{key}"]
    assert (error.message, error.nearest, error.file) == ("unknown key", nearest, str(spec.file))
    assert nearest is None or nearest in str(error.expected)


@pytest.mark.parametrize("key", ["workload.recipe", "workload.gpu_type", "workload.dtype", "target.scheduler"])
def test_an_empty_name_is_an_error(spec: Any, key: str) -> None:
    """A spec with an empty scheduler was valid and had no runs."""
    table, _, name = key.partition(".")
    assert key in spec.usual(**{table: {name: ""}}).errors()


def test_the_keys_of_target_are_those_of_the_core_and_of_the_scheduler(spec: Any) -> None:
    error = spec.usual(target={"lok": 1}).errors()["target.lok"]
    known = str(error.expected).removeprefix("one of ").split(", ")
    assert {"lock", "scheduler", "host", "workdir", "name", "gpus_per_node"} <= set(known)


@pytest.mark.parametrize(
    ("table", "nearest"), [("targt", "target"), ("tp", "parallelism.tp"), ("gpus", "workload.gpus")]
)
def test_an_unknown_table_is_named_with_the_nearest_table_or_key(spec: Any, table: str, nearest: str) -> None:
    spec.usual()
    spec.file.write_text(f"{table} = 1\n{spec.file.read_text()}")
    assert spec.errors()[table].nearest == nearest


@pytest.mark.parametrize(
    ("table", "key", "value", "shown", "expected"),
    [
        ("workload", "gpus", "64", '"64"', EXPECT_POSITIVE),
        ("workload", "gpus", True, "true", EXPECT_POSITIVE),
        ("workload", "gpus", 0, "0", EXPECT_POSITIVE),
        ("workload", "gpus", 1.0, "1.0", EXPECT_POSITIVE),
        ("workload", "steps", -1, "-1", EXPECT_POSITIVE),
        ("workload", "repeats", float("nan"), "nan", EXPECT_POSITIVE),
        ("workload", "steps", [1, 2], "[1, 2]", f'{EXPECT_POSITIVE}, or a list in [sweep] under "workload.steps"'),
        ("workload", "recipe", 5, "5", "a string"),
        ("workload", "gpu_type", False, "false", "a string"),
        (
            "workload",
            "image",
            {},
            "{...}",
            'an image such as "registry.example/name:tag", or the absolute path of a squashfs file on the target',
        ),
        (
            "workload",
            "time_limit",
            "1x",
            '"1x"',
            'a duration such as "1h", "30m", "1h30m" or "90s", or a number of seconds',
        ),
        ("workload", "time_limit", "8761h", '"8761h"', "at most one year, 8760h"),
        ("workload", "time_limit", 10**20, f"{10**20}", "at most one year, 8760h"),
        ("workload", "steps", 2**31, "2147483648", EXPECT_AT_MOST),
        ("model", "mtp_depth", 2**31, "2147483648", EXPECT_AT_MOST),
        ("model", "layers", 10**13, f"{10**13}", EXPECT_AT_MOST),
        ("parallelism", "global_batch_size", 10**18, f"{10**18}", EXPECT_AT_MOST),
        ("parallelism", "tp", {"a": 1}, "{...}", EXPECT_POSITIVE),
        ("parallelism", "vp", float("inf"), "inf", EXPECT_POSITIVE),
        ("model", "layers", "many", '"many"', EXPECT_POSITIVE),
        ("measure", "tolerance", float("inf"), "inf", EXPECT_FRACTION),
        ("measure", "tolerance", float("nan"), "nan", EXPECT_FRACTION),
        ("measure", "tolerance", True, "true", EXPECT_FRACTION),
        ("measure", "tolerance", 5, "5", EXPECT_FRACTION),
        ("measure", "tolerance", 1.0, "1.0", EXPECT_FRACTION),
        ("measure", "window", "first", '"first"', EXPECT_WINDOW.format(35, 44)),
        ("measure", "window", "30:40", '"30:40"', EXPECT_WINDOW.format(30, 40)),
        ("measure", "window", "3 - 4", '"3 - 4"', EXPECT_WINDOW.format(3, 4)),
        ("measure", "window", "35", '"35"', EXPECT_WINDOW.format(35, 44)),
        ("measure", "window", "9" * 5000, f'"{"9" * 56}...', EXPECT_WINDOW.format(35, 44)),
        ("measure", "window", [1, 2, 3], "[1, 2, 3]", EXPECT_WINDOW.format(35, 44)),
        ("measure", "window", [1.5, 2], "[1.5, 2]", EXPECT_WINDOW.format(35, 44)),
        ("framework", "config", "tp=1", '"tp=1"', None),
        ("target", "lock", 3, "3", "a string"),
        ("target", "workdir", "work", '"work"', "an absolute path"),
        ("target", "workdir", "/a\nb", r'"/a\nb"', "a path without line breaks or other invisible characters"),
        ("env", "NAME", 1, "1", "a string"),
    ],
)
def test_a_value_of_a_wrong_type_is_shown_with_the_expected_type(
    spec: Any, table: str, key: str, value: object, shown: str, expected: str | None
) -> None:
    error = spec.usual(**{table: {key: value}}).errors()[f"{table}.{key}"]
    assert error.message == f"invalid value {shown}"
    assert expected is None or error.expected == expected


@pytest.mark.parametrize("table", ["workload", "parallelism", "model", "framework", "env", "mounts", "profile"])
def test_a_string_instead_of_a_table_is_an_error(spec: Any, table: str) -> None:
    spec.usual()
    kept = "[target]\nscheduler = 'local'\n"
    spec.write(f"{table} = 'x'\n{kept}" if table == "workload" else f"{table} = 'x'\n{spec.file.read_text()}")
    error = spec.errors()[table]
    assert error.message == 'invalid value "x"'
    assert "a table" in str(error.expected)


@pytest.mark.parametrize("table", ["measure", "target", "sweep"])
def test_a_number_instead_of_a_table_is_an_error(spec: Any, table: str) -> None:
    spec.write(f"{table} = 3\n[workload]\nrecipe = 'maxtext/llama2-tiny'\n")
    assert "a table" in str(spec.errors()[table].expected)


def test_an_item_deep_in_an_option_is_named_by_its_own_key(spec: Any) -> None:
    found = spec.usual(framework={"config": {"good": 1, "list": [1], "nan": float("nan")}}).errors()
    assert set(found) == {"framework.config.list", "framework.config.nan"}
    assert found["framework.config.nan"].message == "invalid value nan"


def test_an_item_of_a_list_is_named_by_its_index(spec: Any) -> None:
    found = spec.usual(profile={"tool": "nsys", "ranks": [0, "all", True]}).errors()
    assert set(found) == {"profile.ranks[1]", "profile.ranks[2]"}


def test_missing_keys_and_tables_are_named(spec: Any) -> None:
    assert set(spec.write("[workload]\n").errors()) == {
        "target",
        "workload.recipe",
        "workload.gpu_type",
        "workload.dtype",
        "workload.gpus",
    }
    assert spec.write("[target]\n").errors()["workload"].expected == "a table [workload] with a recipe"
    assert spec.errors()["target.scheduler"].message == "required key is missing"


@pytest.mark.parametrize(
    ("tables", "key", "text"),
    [
        ({"parallelism": {"cp": 3}}, "workload.gpus", "tp x pp x cp = 1 x 1 x 3"),
        ({"parallelism": {"tp": 128, "fsdp": 1}}, "parallelism.tp", "64 heads are not divisible by tp = 128"),
        ({"parallelism": {"global_batch_size": 100}}, "parallelism.global_batch_size", "2 x 64 = 128"),
        ({"parallelism": {"pp": 3, "vp": 2}}, "model.layers", "80 layers are not divisible by pp x vp = 3 x 2 = 6"),
        ({"parallelism": {"vp": 2}}, "parallelism.vp", "need a pipeline"),
        ({"parallelism": {"fsdp": 7}}, "parallelism.fsdp", "64 GPUs are not divisible by fsdp = 7"),
        ({"parallelism": {"ep": 2}}, "parallelism.ep", "1 expert is not divisible by ep = 2"),
        ({"model": {"heads": 60}}, "parallelism.tp", ""),
        ({"target": {"gpus_per_node": 8}}, "workload.gpus", "the machine has 8 GPUs, but the run needs 64"),
        (
            {"measure": {"window": [35, 44]}, "workload": {"steps": 40}},
            "measure.window",
            "window [35, 44] is outside the run's 40 steps",
        ),
        ({"measure": {"window": [9, 3]}}, "measure.window", "window [9, 3] ends before it starts"),
        ({"measure": {"window": [-1, 3]}}, "measure.window", "window [-1, 3] is outside the run's 50 steps"),
        ({"target": {"host": "box", "scheduler": "nowhere"}}, "target.workdir", "required key is missing"),
        ({"workload": {"image": ""}}, "workload.image", 'invalid value ""'),
        ({"workload": {"image": "registry.example/name: tag"}}, "workload.image", "name: tag"),
        ({"workload": {"image": "--privileged"}}, "workload.image", 'invalid value "--privileged"'),
        ({"workload": {"image": "a/b:1\n"}}, "workload.image", r'invalid value "a/b:1\n"'),
        ({"workload": {"image": "a/b:\x1b[2J"}}, "workload.image", "invalid value"),
        ({"workload": {"image": "/lustre/my images/nemo.sqsh"}}, "workload.image", "nemo.sqsh"),
        ({"workload": {"image": "/lustre/nemo.sqsh,/x"}}, "workload.image", "nemo.sqsh"),
        ({"workload": {"image": "./nemo.sqsh"}}, "workload.image", "nemo.sqsh"),
        ({"workload": {"image": "images/nemo.sqsh"}}, "workload.image", "images/nemo.sqsh"),
        ({"workload": {"image": "docker://nvcr.io/nvidia/nemo:24.12"}}, "workload.image", "docker://nvcr.io"),
        ({"workload": {"image": "nvcr.io#nvidia/nemo:24.12"}}, "workload.image", "nvcr.io#nvidia"),
        ({"mounts": {"/data\n/etc": "/data"}}, 'mounts."/data\n/etc"', "a path contains a control character"),
        ({"mounts": {"/data": "/x\x07"}}, 'mounts."/data"', "a path contains a control character"),
        ({"mounts": {"-v/data": "/x"}}, 'mounts."-v/data"', "not an absolute path"),
        ({"target": {"workdir": "-rf"}}, "target.workdir", 'invalid value "-rf"'),
        (
            {"profile": {"tool": "nsys", "start_step": 9, "stop_step": 3}},
            "profile",
            "steps 9 to 3 are not a range within the run's 50 steps",
        ),
        ({"profile": {"tool": "nsys", "start_step": 9, "stop_step": 9}}, "profile", "steps 9 to 9"),
        ({"profile": {"tool": "nccl-trace", "start_step": 3}}, "profile.start_step", "only nsys supports this key"),
        ({"profile": {"tool": "nccl-trace", "ranks": [0]}}, "profile.ranks", "only nsys supports this key"),
        (
            {"profile": {"tool": "nccl-trace", "gpu_metrics": True}},
            "profile.gpu_metrics",
            "only nsys supports this key",
        ),
        (
            {"profile": {"tool": "nsys", "stop_step": 51}},
            "profile",
            "steps 0 to 51 are not a range within the run's 50 steps",
        ),
        ({"profile": {"tool": "nsys", "ranks": [0, 64]}}, "profile.ranks", "no rank 64 among 64 GPUs"),
        ({"profile": {"tool": "nsys", "ranks": []}}, "profile.ranks", "empty list"),
    ],
)
def test_an_impossible_combination_is_an_error(spec: Any, tables: dict[str, Any], key: str, text: str) -> None:
    if tables == {"model": {"heads": 60}}:
        model = {"heads": 60, "head_size": 128, "query_groups": 20}
        tables = {"model": model, "parallelism": {"tp": 32, "fsdp": 2}}
    assert text in spec.big(**tables).errors()[key].message


def test_the_recipes_own_window_beyond_fewer_steps_is_called_the_recipes(spec: Any) -> None:
    error = spec.usual(workload={"steps": 20}).errors()["measure.window"]
    assert error.message == "the recipe's window [10, 49] is outside the run's 20 steps"


@pytest.mark.parametrize(
    ("table", "key", "value", "nearest", "text"),
    [
        ("workload", "recipe", "maxtext/llama2-70", "maxtext/llama2-70b", "llmb-maxtext"),
        ("workload", "recipe", "maxtex/llama2-70b", "maxtext", "is not installed"),
        ("workload", "recipe", "llama2-70b", "maxtext/llama2-70b", "is not the address of a recipe"),
        ("workload", "recipe", "maxtext", None, "'maxtext' is a framework, not the address of a recipe"),
        ("workload", "recipe", "./mylm", None, "'./mylm' is not the address of a recipe"),
        ("workload", "gpu_type", "h10", "h100", "unknown GPU type h10"),
        ("workload", "gpu_type", "GB200", "gb200", "unknown GPU type GB200"),
        ("workload", "dtype", "bf61", "bf16", "h100 does not support bf61"),
        ("target", "scheduler", "locl", "local", "is not installed"),
        ("profile", "tool", "nsyss", None, 'invalid value "nsyss"'),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest_one(
    spec: Any, table: str, key: str, value: str, nearest: str | None, text: str
) -> None:
    error = spec.big(**{table: {key: value}}).errors()[f"{table}.{key}"]
    assert error.nearest == nearest
    assert text in error.message


def test_a_dtype_that_the_gpu_does_not_support_is_an_error(spec: Any) -> None:
    error = spec.big(workload={"gpu_type": "a100", "dtype": "fp8"}).errors()["workload.dtype"]
    assert (error.message, error.expected) == ("a100 does not support fp8", "bf16")


def test_an_unpublished_gpu_is_an_error_that_lists_the_published_ones(spec: Any) -> None:
    error = spec.big(workload={"gpu_type": "h200"}).errors()["workload.gpu_type"]
    assert error.expected == "h100 or a100, or set parallelism.global_batch_size"
    assert "maxtext/llama2-70b has no configuration for h200" in error.message


def test_on_another_gpu_a_recipe_runs_with_a_parallelism_of_ones_own_and_is_not_judged(spec: Any) -> None:
    [run] = spec.big(workload={"gpu_type": "h200"}, parallelism={"global_batch_size": 256}).runs()
    assert (run.gpu_type, run.accelerator.memory_gb) == ("h200", 141)
    assert run.parallelism.global_batch_size == 256
    assert run.settings["config"]["model_name"] == "llama2-70b"
    assert run.baseline is None
    assert run.differences == ("workload.gpu_type",)


def test_another_gpu_does_not_change_which_dtypes_a_recipe_has(spec: Any) -> None:
    own = {"global_batch_size": 256}
    assert "workload.dtype" in spec.big(workload={"gpu_type": "b200", "dtype": "nvfp4"}, parallelism=own).errors()


def test_an_unpublished_gpu_count_is_rejected_with_the_published_ones(spec: Any) -> None:
    error = spec.usual(workload={"gpus": 3}).errors()["workload.gpus"]
    assert error.message == "maxtext/llama2-tiny has no configuration for 3 GPUs (cpu, fp32)"
    assert error.expected == "1 or 2, or set parallelism.global_batch_size"


def test_an_unpublished_gpu_count_is_run_with_a_parallelism_of_its_own(spec: Any) -> None:
    own = {"fsdp": 96, "global_batch_size": 192}
    [run] = spec.big(workload={"gpus": 96}, parallelism=own).runs()
    assert (run.gpus, run.parallelism.fsdp, run.parallelism.global_batch_size) == (96, 96, 192)
    assert run.differences == ("workload.gpus",)
    assert run.baseline is None


def test_nodes_of_another_size_than_published_are_a_difference(spec: Any) -> None:
    [run] = spec.big().runs()
    assert (run.nodes, run.differences) == (1, ("target.gpus_per_node",))
    [run] = spec.usual().runs()
    assert run.differences == ()


BIG_AS_PUBLISHED = {"target": {"gpus_per_node": 8, "scheduler": "slurm"}}


@pytest.mark.parametrize(
    ("tables", "differences"),
    [
        ({"workload": {"steps": 20}}, ("workload.steps",)),  # the last is measured: the publisher still warmed up
        ({"workload": {"steps": 50}}, ()),
        ({"workload": {"steps": 60}}, ()),
        ({"telemetry": {"interval": "5s"}}, ()),
        ({"env": {"A": "1"}, "mounts": {"/me/x": "/opt/x", "/d": "/d:ro"}}, ("env.A", 'mounts."/me/x"', 'mounts."/d"')),
    ],
)
def test_a_value_that_is_not_published_is_a_difference(
    spec: Any, tables: dict[str, dict[str, Any]], differences: tuple[str, ...]
) -> None:
    [run] = spec.big(**BIG_AS_PUBLISHED, **tables).runs()
    assert run.differences == differences


def test_fewer_steps_do_not_matter_to_a_window_of_steps(spec: Any) -> None:
    [run] = spec.usual(workload={"steps": 49}).runs()
    assert run.differences == ()


def test_a_framework_table_with_recipes_of_several_frameworks_is_an_error(spec: Any) -> None:
    both = ["maxtext/llama2-70b", "other/llama2-70b"]
    found = spec.big(workload={"recipe": both}, framework={"anything": 1}).errors()
    assert found["framework"].message == "the recipes have several frameworks (maxtext, other)"
    assert "framework.anything" not in found


@pytest.mark.parametrize("name", ["HF_TOKEN", "NGC_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "hf_token"])
def test_a_secret_in_env_is_rejected_and_never_printed(spec: Any, name: str) -> None:
    found = spec.usual(env={name: "hush-hush"}).errors()
    assert found[f"env.{name}"].message == (
        f"secrets are not allowed in a spec, because llmb records it; export {name} before running llmb"
    )
    assert "hush-hush" not in "".join(map(str, found.values()))


@pytest.mark.parametrize(
    ("tables", "key", "message"),
    [
        ({"framework": {"config": {"api_key": "hush-hush"}}}, "framework.config.api_key", "secrets are not allowed"),
        (
            {"framework": {"config": {"login": [{"password": "hush-hush"}]}}},
            "framework.config.login[0].password",
            "secrets are not allowed",
        ),
        (
            {"framework": {"config": {"hub": "https://me:hush-hush@box"}}},
            "framework.config.hub",
            "a URL with a password",
        ),
        ({"target": {"hub_token": "hush-hush"}}, "target.hub_token", "unknown key"),
    ],
)
def test_a_secret_in_any_table_is_rejected_and_never_printed(
    spec: Any, tables: dict[str, Any], key: str, message: str
) -> None:
    found = spec.usual(**tables).errors()
    assert message in found[key].message
    assert "hush-hush" not in "".join(map(str, found.values()))


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "KEY_CACHE"])
def test_a_name_that_only_resembles_a_secret_is_accepted(spec: Any, name: str) -> None:
    [run] = spec.usual(env={name: "x"}).runs()
    assert run.env[name] == "x"


def test_a_variable_that_no_shell_can_set_is_an_error(spec: Any) -> None:
    assert set(spec.usual(env={"A B": "x", "1A": "x", "NUL": "a\0b"}).errors()) == {"env.A B", "env.1A", "env.NUL"}


@pytest.mark.parametrize(("source", "target"), [("/data", "data"), ("/data", "/data:rx")])
def test_a_mount_needs_absolute_paths_and_a_known_mode(spec: Any, source: str, target: str) -> None:
    assert spec.usual(mounts={source: target}).errors()[f'mounts."{source}"'].message == f'invalid value "{target}"'


def test_a_mount_is_writable_unless_it_is_read_only(spec: Any) -> None:
    [run] = spec.usual(mounts={"/a": "/x", "/b": "/y:ro", "/c": "/z:rw"}).runs()
    assert [(each.source, each.target, each.read_only) for each in run.mounts] == [
        ("/a", "/x", False),
        ("/b", "/y", True),
        ("/c", "/z", False),
    ]


def test_all_errors_of_a_spec_are_reported_together(spec: Any) -> None:
    found = spec.write("""
    [workload]
    recipe = "maxtext/llama2-70b"
    gpu_type = "h100"
    dtype = ["fp8", "int3"]
    gpus = ["64", 64]
    [parallelism]
    tpp = 2
    [framework]
    confg = 4
    [env]
    HF_TOKEN = "x"
    [measure]
    tolerance = -1
    [sweep]
    "model.layers" = 3
    [target]
    scheduler = "local"
    lok = "x"
    [targt]
    """).errors()
    assert set(found) == {
        "workload.dtype[1]",
        "workload.gpus[0]",
        "parallelism.tpp",
        "framework.confg",
        "env.HF_TOKEN",
        "measure.tolerance",
        "sweep.model.layers",
        "target.lok",
        "targt",
    }
    assert {error.file for error in found.values()} == {str(spec.file)}


def test_an_error_is_one_line_with_file_key_value_expectation_and_nearest_name(spec: Any) -> None:
    error = spec.usual(workload={"gpu_type": "cpuu"}).errors()["workload.gpu_type"]
    [line] = str(error).splitlines()
    assert line.startswith(
        f"{spec.file}: workload.gpu_type: unknown GPU type cpuu; expected one of a100, b200, b300, cpu,"
    )
    assert line.endswith("accelerators.toml (did you mean 'cpu'?)")


def test_an_error_of_a_plugin_names_the_file_and_the_key_as_written(spec: Any) -> None:
    spec.usual(workload={"gpus": 2}, sweep={"parallelism.pp": [2]})
    error = spec.errors()["sweep.parallelism.pp[0]"]
    assert (error.file, error.message) == (str(spec.file), "2 is not supported")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xff\xfe[workload]", "invalid UTF-8 at byte 0; expected a TOML file in UTF-8"),
        (b"[workload]\nrecipe = 'caf\xe9'", "invalid UTF-8 at byte 24; expected a TOML file in UTF-8"),
        (b"", "the spec is empty; expected at least a [workload] and a [target] table"),
        (b" \n# a comment\n", "the spec is empty; expected at least a [workload] and a [target] table"),
        (
            b"command = ['true']\n[log]\nline = 'iter {step}'",
            "the file describes a framework; expected a spec whose workload.recipe is the path of this file",
        ),
        (b"[workload", "invalid TOML: Expected ']' at the end of a table declaration (at end of document)"),
        (b"a = 1\na = 2", "invalid TOML: Cannot overwrite a value (at end of document)"),
        (b"a = " + b"[" * 5000, "invalid TOML: nested too deeply"),
    ],
)
def test_a_file_that_is_no_toml_is_one_line(spec: Any, content: bytes, text: str) -> None:
    spec.file.write_bytes(content)
    with pytest.raises(llmb.SpecError) as raised:
        spec.load()
    assert str(raised.value) == f"{spec.file}: {text}"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nothing.toml", "no such file"),
        (".", "the path is a directory; expected a TOML file"),
        ("file/spec.toml", "cannot read the file: Not a directory"),
        ("link.toml", "a symbolic link to moved.toml, which does not exist"),
        ("a\0.toml", "the path contains a NUL character"),
    ],
)
def test_a_path_that_is_no_file_is_one_line(tmp_path: Path, path: str, text: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link.toml").symlink_to("moved.toml")
    with pytest.raises(llmb.SpecError) as raised:
        llmb.load(tmp_path / path)
    assert str(raised.value) == f"{tmp_path / path}: {text}"


def test_a_byte_order_mark_is_accepted(spec: Any) -> None:
    spec.usual()
    spec.file.write_bytes(b"\xef\xbb\xbf" + spec.file.read_bytes())
    assert len(spec.runs()) == 1
