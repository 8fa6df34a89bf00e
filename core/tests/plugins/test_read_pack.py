"""Packs: recipes, declared frameworks, accelerators and signatures as data, and where frameworks are found."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs
import pytest
import tomli_w

import llmb
from llmb.logs.failures import match_patterns
from llmb.logs.failures.commands_in_remedies import FIRST_ERRORS
from llmb.plugins.registry import PluginRegistry
from llmb.records.create_records import PendingSweep, complete_stale_sweeps
from llmb.spec.spec_of_run import build_run_toml, read_run_toml

FRAMEWORK = """
command = ["true", "{steps}"]
files = ["lib/train.py"]
log.line = "iter {step}: {time_s} s"
[recipe]
steps = 3
seq_len = 8
dtypes = ["fp32"]
global_batch_size = "gpus"
"""
RECIPE = """
release = "1"
description = "a recipe of a pack"
source = "its author"
window = "last"
steps = 7
time_limit = "1h"
seq_len = 64
params = 1e6
dtypes = ["fp32"]
global_batch_size = 4
"""
GPU = '[npu7]\ngpus_per_node = 4\nmemory_gb = 48\npeak_flops = { bf16 = 362.05e12 }\nsource = "a data sheet"\n'
BROKEN = 'raise SystemExit("a pack is never imported")'
METRICS = ("--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64", "--step-time", "3")


@pytest.fixture
def config() -> Path:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "llmb"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def write_framework(folder: Path, name: str = "mylm") -> Path:
    write(folder, "frameworks/lib/train.py", "print(1)\n")
    return write(folder, f"frameworks/{name}.toml", FRAMEWORK)


def install_pack(site: Any, **files: str) -> None:
    contents = {"acme_llmb/__init__.py": BROKEN, **{f"acme_llmb/{path}": text for path, text in files.items()}}
    site.install("llmb-acme", files=contents, entry_points={"llmb.packs": {"acme": "acme_llmb"}})


def spec_of(recipe: Any, **workload: Any) -> dict[str, Any]:
    return {
        "workload": {"recipe": recipe, "gpu_type": "cpu", "dtype": "fp32", "gpus": 1, **workload},
        "target": {"scheduler": "local"},
    }


def test_the_users_folder_is_a_pack(config: Path) -> None:
    write_framework(config)
    write(config, "recipes/mylm/other.toml", RECIPE)
    write(config, "accelerators.toml", GPU)
    assert {"mylm/mylm", "mylm/other"} <= {*llmb.recipe_addresses()}
    assert [each.run.steps for each in llmb.load(spec_of(["mylm/mylm", "mylm/other"])).runs] == [3, 7]
    [plugin] = [each for each in llmb.list_plugins() if each.kind == "pack"]
    assert (plugin.name, plugin.hooks, plugin.error) == ("user", ("recipes", "frameworks", "accelerators"), None)


def test_a_recipe_of_a_framework_file_and_of_a_pack_is_an_error_that_names_both(config: Path) -> None:
    framework, recipe = write_framework(config), write(config, "recipes/mylm/mylm.toml", RECIPE)
    with pytest.raises(llmb.LlmbError) as raised:
        llmb.load(spec_of("mylm/mylm"))
    assert f"recipe 'mylm/mylm' is defined in {recipe} and {framework}; remove all except one" in str(raised.value)


def test_a_pack_is_data_and_is_never_imported(site: Any, run_llmb: Any) -> None:
    install_pack(
        site,
        **{
            "recipes/maxtext/acme-7b.toml": RECIPE,
            "frameworks/acmelm.toml": FRAMEWORK.replace("lib/train.py", "train.py"),
            "frameworks/train.py": "print(1)",
            "accelerators.toml": GPU,
            "signatures.toml": '[[signatures]]\nneedle = "acme bus"\ncause = "the bus broke"\nremedy = "call"\n',
        },
    )
    listed = json.loads(run_llmb("recipes", "--json").stdout)["recipes"]
    assert {"maxtext/acme-7b", "acmelm/acmelm"} <= {each["address"] for each in listed}
    plugins = json.loads(run_llmb("plugins", "--json").stdout)["plugins"]
    [pack] = [each for each in plugins if each["kind"] == "pack"]
    assert (pack["name"], pack["distribution"], pack["error"]) == ("acme", "llmb-acme", None)
    assert pack["hooks"] == ["recipes", "frameworks", "accelerators", "signatures"]
    document = json.loads(run_llmb("recipes", "maxtext/acme-7b", "--json").stdout)
    assert document["address"] == "maxtext/acme-7b"


def test_an_unknown_gpu_type_is_defined_by_five_lines(config: Path) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        llmb.load(spec_of("maxtext/llama2-tiny", gpu_type="npu7"))
    first, *lines = next(str(each) for each in raised.value.faults if each.key == "workload.gpu_type").splitlines()
    assert f"or a table in {config}/accelerators.toml with these lines" in first
    assert len(lines) == 5
    write(config, "accelerators.toml", "\n".join(lines))
    write_framework(config)
    [accelerator] = PluginRegistry().accelerators()
    assert accelerator.name == "npu7"
    with pytest.raises(llmb.SpecError) as raised:
        llmb.load(spec_of("mylm/mylm", gpu_type="npu7"))
    assert "npu7 supports none of the dtypes of mylm/mylm: fp32" in str(raised.value)


def test_a_peak_in_tflops_is_an_error_that_shows_it_in_flops(config: Path) -> None:
    file = write(config, "accelerators.toml", GPU.replace("362.05e12", "600"))
    [plugin] = [each for each in llmb.list_plugins() if each.kind == "pack"]
    problem = "600 FLOP/s is out of range; write 600e12 for 600 TFLOP/s"
    assert f"{file}: npu7.peak_flops.bf16: {problem}" in str(plugin.error)


def test_recipes_in_the_wrong_place_of_a_pack_are_an_error(config: Path) -> None:
    write(config, "recipes/loose.toml", RECIPE)
    write(config, "recipes/maxtext/x@y@z.toml", RECIPE)
    [plugin] = [each for each in llmb.list_plugins() if each.kind == "pack"]
    assert "recipes/loose.toml: no framework has this recipe; move it to recipes/FRAMEWORK/loose.toml" in str(
        plugin.error
    )
    assert "x@y@z.toml: invalid name of a recipe; expected NAME.toml or NAME@RELEASE.toml" in str(plugin.error)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("accelerator.toml", "accelerators.toml"),
        ("signature.toml", "signatures.toml"),
        ("recipe/maxtext/x.toml", "recipes"),
        ("framework/x.toml", "frameworks"),
    ],
)
def test_a_misspelt_file_or_folder_of_a_pack_is_an_error(config: Path, name: str, known: str) -> None:
    write(config, "accelerators.toml", GPU)
    for other in ("targets.toml", "signatures.toml~", "recipes.old/maxtext/x.toml"):
        write(config, other, "")
    write(config, name, "")
    [plugin] = [each for each in llmb.list_plugins() if each.kind == "pack"]
    path = config / name.partition("/")[0]
    assert plugin.error == f"{path}: llmb does not read this name (did you mean '{known}'?)"


def test_an_empty_name_of_a_gpu_type_is_an_error_with_its_file(config: Path, run_llmb: Any) -> None:
    file = write(config, "accelerators.toml", GPU.replace("[npu7]", '[""]'))
    [pack] = [each for each in run_llmb.json("plugins")["plugins"] if each["kind"] == "pack"]
    assert pack["error"] == f'{file}: invalid GPU type ""; expected a non-empty string'
    file.write_text('[""]')
    [pack] = [each for each in run_llmb.json("plugins")["plugins"] if each["kind"] == "pack"]
    assert "gpus_per_node: required key is missing" in pack["error"]


def test_a_name_that_two_places_define_is_an_error_only_if_it_is_used(config: Path, site: Any, run_llmb: Any) -> None:
    own = write_framework(config)
    gpu = write(config, "accelerators.toml", GPU)
    install_pack(
        site,
        **{
            "frameworks/mylm.toml": FRAMEWORK.replace("lib/", ""),
            "frameworks/train.py": "",
            "recipes/maxtext/llama2-tiny.toml": RECIPE,
            "accelerators.toml": GPU,
        },
    )
    other = site.folder / "acme_llmb"
    spec = config / "spec.toml"
    for recipe, places in (
        ("mylm/mylm", (own, other / "frameworks/mylm.toml")),
        ("maxtext/llama2-tiny", (other / "recipes/maxtext/llama2-tiny.toml", "llmb_maxtext/recipes/llama2-tiny.toml")),
    ):
        spec.write_text(tomli_w.dumps(spec_of(recipe)))
        found = run_llmb("validate", spec)
        assert found.returncode == 2
        assert all(str(place) in found.stderr for place in places), found.stderr
        assert "all except one" in found.stderr
    spec.write_text(tomli_w.dumps(spec_of("maxtext/llama2-70b", gpu_type="npu7", dtype="bf16")))
    found = run_llmb("validate", spec)
    assert f"GPU type npu7 is defined by llmb-acme 1.2.3 and {gpu.parent}" in found.stderr
    assert run_llmb("metrics", "maxtext/llama2-70b", *METRICS).returncode == 0
    assert run_llmb("recipes").returncode == 0


def test_a_broken_file_affects_no_other_command(config: Path, run_llmb: Any) -> None:
    file = write(config, "frameworks/broken.toml", "command = [")
    write(config, "signatures.toml", "[[signatures]]\nneedle = 3\n")
    listed = run_llmb("recipes", "--json")
    assert (listed.returncode, f"{file}: invalid TOML" in listed.stderr) == (0, True)
    errors = {each.name: each.error for each in llmb.list_plugins() if each.error}
    assert "signatures.toml: signatures[0].needle: invalid value 3" in errors["user"]
    assert "broken.toml: invalid TOML" in errors["broken"]
    assert run_llmb("metrics", "maxtext/llama2-70b", *METRICS).returncode == 0


def test_a_signature_of_a_pack_is_a_cause_in_every_log(config: Path, tmp_path: Path) -> None:
    write_framework(config)
    table = {"needle": "bus 7 broke", "cause": "a bus broke", "remedy": "read {first_errors}"}
    write(config, "signatures.toml", tomli_w.dumps({"signatures": [table]}))
    log = write(tmp_path, "a.log", "iter 1: 2.5 s\nERROR: bus 7 broke\n")
    failure = llmb.parse(log, framework="mylm").failure
    assert failure
    assert failure.cause == "a bus broke"
    assert failure.remedy == f"read {FIRST_ERRORS}".replace("LOGS", str(log))


def test_a_signature_of_a_pack_may_have_several_texts(config: Path, tmp_path: Path) -> None:
    write_framework(config)
    table = {"needles": {"bus 7 broke": "acme 1", "bus 7 is broken": "acme 2"}, "cause": "a bus broke"}
    write(config, "signatures.toml", tomli_w.dumps({"signatures": [table]}))
    for needle in table["needles"]:
        log = write(tmp_path, "a.log", f"iter 1: 2.5 s\nERROR: {needle}\n")
        failure = llmb.parse(log, framework="mylm").failure
        assert failure
        assert (failure.cause, failure.evidence) == ("a bus broke", f"ERROR: {needle}")


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ({"needles": "bus"}, '.needles: invalid value "bus"; expected a table, each value a string'),
        ({"needles": {"bus": 3}}, ".needles.bus: invalid value 3; expected a string"),
        ({"needles": {"bus": "", "car": ""}, "caus": "a"}, ".caus: unknown key; expected one of needle, cause"),
        ({"needles": {"bus": ""}, "needle": "bus"}, ": both needle and needles are set; remove one of them"),
        ({}, ".needle: required key is missing; expected a non-empty string"),
    ],
)
def test_wrong_texts_of_a_signature_are_one_error(config: Path, entry: dict[str, Any], error: str) -> None:
    file = write(config, "signatures.toml", tomli_w.dumps({"signatures": [{"cause": "a bus broke", **entry}]}))
    [found] = [each.error for each in llmb.list_plugins() if each.error]
    assert found.count("signatures[0]") == 1
    assert found.startswith(f"{file}: signatures[0]{error}")


def test_a_signature_of_a_pack_names_rank_host_and_who_can_fix_it(config: Path, tmp_path: Path) -> None:
    write_framework(config)
    table = {
        "needle": "bus ",
        "cause": "bus {} broke",
        "origin": "infrastructure",
        "pattern": r"bus (?P<detail>\d+) of (?P<host>\S+) broke under rank (?P<rank>\d+)",
    }
    write(config, "signatures.toml", tomli_w.dumps({"signatures": [table]}))
    log = write(tmp_path, "a.log", "iter 1: 2.5 s\nERROR: bus 7 of node3 broke under rank 5\n")
    failure = llmb.parse(log, framework="mylm").failure
    assert failure
    assert (failure.cause, failure.origin, failure.host, failure.rank) == ("bus 7 broke", "infrastructure", "node3", 5)


@pytest.mark.parametrize(
    ("keys", "cause"),
    [({}, "a bus broke"), ({"yields_to": ["a disk is full"]}, "a disk is full"), ({"survivable": True}, "the end")],
)
def test_a_signature_of_a_pack_gives_way_to_what_explains_the_end(
    config: Path, tmp_path: Path, keys: dict[str, Any], cause: str
) -> None:
    write_framework(config)
    tables = [{"needle": "bus 7 broke", "cause": "a bus broke", **keys}, {"needle": "end 1", "cause": "the end"}]
    write(config, "signatures.toml", tomli_w.dumps({"signatures": tables}))
    text = "ERROR: bus 7 broke\n" + "loading a shard\n" * 9 + "ERROR: end 1\nOSError: No space left on device\n"
    failure = llmb.parse(write(tmp_path, "a.log", f"iter 1: 2.5 s\n{text}"), framework="mylm").failure
    assert failure
    assert failure.cause == cause


def test_a_signature_that_yields_to_an_unknown_cause_is_an_error(config: Path) -> None:
    tables = [{"needle": "bus", "cause": "a bus broke", "yields_to": ["a disk is ful", "a bus broke"]}]
    file = write(config, "signatures.toml", tomli_w.dumps({"signatures": tables}))
    [error] = [each.error for each in llmb.list_plugins() if each.error]
    assert error == (
        f'{file}: signatures[0].yields_to: unknown cause "a disk is ful"; expected the cause of a signature of llmb '
        "or of this file (did you mean 'a disk is full'?)"
    )


def test_a_plugin_whose_signature_yields_to_an_unknown_cause_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"needle": "bus", "cause": "a bus broke", "yields_to": ["a disk is ful"]}
    write(tmp_path, "bus_pack/__init__.py", "")
    write(tmp_path, "bus_pack/signatures.toml", tomli_w.dumps({"signatures": [table]}))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"invalid Signature\.yields_to 'a disk is ful'"):
        llmb.read_signatures("bus_pack", "signatures.toml")


@pytest.mark.parametrize(("key", "expression"), [("pattern", "("), ("detail", "("), ("detail", "bus 7")])
def test_an_invalid_expression_of_a_pack_is_an_error_of_its_file(config: Path, key: str, expression: str) -> None:
    table = {"needle": "bus", "cause": "a bus broke", key: expression}
    file = write(config, "signatures.toml", tomli_w.dumps({"signatures": [table]}))
    [error] = [each.error for each in llmb.list_plugins() if each.error]
    assert error.startswith(f"{file}: signatures[0].{key}: invalid Signature.{key} {expression!r}")


@pytest.mark.parametrize(("key", "causes"), [("pattern", [None]), ("detail", ["a bus broke"])])
def test_an_expression_that_backtracks_is_left_out_with_a_warning(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, causes: list[str | None]
) -> None:
    monkeypatch.setattr(match_patterns, "LIMIT_S", 0.2)
    table = {"needle": "bus", "cause": "a bus broke", key: "bus (?:a|a)*(b)"}
    write(config, "signatures.toml", tomli_w.dumps({"signatures": [table]}))
    log = tmp_path / "a.log"
    log.write_text("completed step: 0, seconds: 1.0\n" + f"bus {'a' * 40}\n" * 3)
    with pytest.warns(llmb.PluginWarning, match=f"left out: {key} of the cause 'a bus broke' takes more than 0.2 s"):
        found = llmb.parse(log, framework="maxtext")
    assert [found.failure.cause if found.failure else None] == causes


def test_a_cause_lacks_a_detail_that_the_line_lacks() -> None:
    signature = llmb.Signature(needle="bus", cause="a bus broke", detail=r"bus(?: (\d+))?")
    assert signature.cause_in("bus 7") == "a bus broke (7)"
    assert signature.cause_in("bus") == "a bus broke"
    numbered = attrs.evolve(signature, cause="bus {} broke")
    assert (numbered.cause_in("bus 7"), numbered.cause_in("bus")) == ("bus 7 broke", "bus ... broke")


def test_the_record_keeps_the_file_and_the_files_that_it_names(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_framework(config)
    [spec] = llmb.load(spec_of("mylm/mylm")).runs
    assert spec.recipe_copy
    for name, text in spec.recipe_copy.files.items():
        write(tmp_path, f"record/{name}", text)
    tables = build_run_toml(spec.with_run_id("abcde-x"), {})
    assert tables["workload"]["recipe"] == "./framework/mylm.toml#mylm"
    record = write(tmp_path, "record/run.toml", tomli_w.dumps(tables))
    file.unlink()
    again = read_run_toml(record, PluginRegistry())
    assert again.run.recipe == "mylm/mylm"
    assert again.run.framework == str(tmp_path / "record/framework/mylm.toml")
    [job] = [each.job for each in llmb.plan(llmb.load(record))]
    assert job.files[f"{job.directory}/lib/train.py"] == "print(1)\n"
    monkeypatch.chdir(record.parent)  # where the path in the record exists as it is
    assert read_run_toml(record, PluginRegistry()).run.framework == again.run.framework


def test_a_killed_process_leaves_the_files_of_its_records_to_the_next() -> None:
    home = llmb.home_folder()
    PendingSweep.write(home / "recording", {"r1": ({"workload": {}}, "job", {"framework/a.toml": "a = 1\n"})}).close()
    complete_stale_sweeps()
    assert (home / "runs/r1/framework/a.toml").read_text() == "a = 1\n"


def test_a_sweep_over_files_runs_each(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path, f"{name}.toml", FRAMEWORK.replace('files = ["lib/train.py"]', ""))
    spec = write(tmp_path, "spec.toml", tomli_w.dumps(spec_of(["./one.toml", "./two.toml"])))
    assert [each.run.recipe for each in llmb.load(spec).runs] == ["one/one", "two/two"]


def test_a_file_does_not_take_the_place_of_an_installed_recipe_of_its_name(config: Path, tmp_path: Path) -> None:
    write_framework(config)
    other = write(tmp_path, "mylm.toml", FRAMEWORK.replace("steps = 3", "steps = 7").replace('"lib/train.py"', ""))
    runs = llmb.load(spec_of([str(other), "mylm/mylm"])).runs
    assert [each.run.steps for each in runs] == [7, 3]
