"""The JSON Schemas of ``llmb schema``: they accept every example and reject errors of structure."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import attrs
import jsonschema
import pytest
from parts.command_line import command_line
from parts.repository import ROOT

import llmb
from llmb.plugins.declared.framework_tables import DeclaredFile
from llmb.recipes.recipe_tables import RecipeTable
from llmb.spec.field_texts import field_texts
from llmb.spec.workload_tables import TABLES

SPEC: dict[str, Any] = {
    "workload": {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": ["bf16", "fp8"], "gpus": 64},
    "target": {"scheduler": "slurm", "workdir": "/lustre/me"},
}
RECIPES = sorted(ROOT.glob("*plugins/**/src/*/recipes/*.toml"))
DELETE = object()


@pytest.fixture(scope="module")
def spec() -> jsonschema.Draft202012Validator:
    return validator("spec")


def validator(kind: Any) -> jsonschema.Draft202012Validator:
    schema = json.loads(json.dumps(llmb.json_schema(kind)))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def errors(schema: jsonschema.Draft202012Validator, document: Any) -> list[str]:
    """Return why the schema rejects a document."""
    return [error.message for error in schema.iter_errors(document)]


def changed(key: str, value: Any) -> dict[str, Any]:
    """Return the spec with one key set or deleted."""
    tables = copy.deepcopy(SPEC)
    *above, name = key.split(".")
    table = tables
    for each in above:
        table = table.setdefault(each, {})
    if value is DELETE:
        del table[name]
    else:
        table[name] = value
    return tables


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.toml")), ids=lambda path: path.name)
def test_an_example_is_valid(spec: jsonschema.Draft202012Validator, example: Path) -> None:
    assert errors(spec, tomllib.loads(example.read_text())) == []


@pytest.mark.parametrize("address", llmb.recipe_addresses())
def test_a_starter_workload_is_valid(spec: jsonschema.Draft202012Validator, address: str) -> None:
    assert errors(spec, tomllib.loads(llmb.starter_workload(address))) == []


def test_the_record_of_a_run_is_valid(spec: jsonschema.Draft202012Validator) -> None:
    assert errors(spec, changed("provenance", {"llmb": "0.1.0", "sweep": {}})) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("target", {"name": "eos"}),
        ("target", {"name": "eos", "partition": "large"}),
        ("workload.recipe", ["maxtext/llama2-70b", "maxtext/llama2-70b@24.11"]),
        ("workload.recipe", ["./mylm.toml", "../mylm.toml#small"]),
        ("workload.time_limit", "1h30m"),
        ("workload.time_limit", 600),
        ("measure.window", "last"),
        ("measure.window", [35, 44]),
        ("framework.config", {"remat_policy": "full", "steps": 3}),
        ("sweep", {"parallelism.tp": [1, 2], "measure": {"window": ["last", [1, 2]]}}),
        ("target.sbatch", {"contiguous": True}),
        ("mounts", {"/a": "/b:ro"}),
    ],
)
def test_a_valid_value_is_accepted(spec: jsonschema.Draft202012Validator, key: str, value: Any) -> None:
    assert errors(spec, changed(key, value)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("workload.gpus", "64"),
        ("workload.gpus", 0),
        ("workload.gpus", 64.5),
        ("workload.gpus", True),
        ("workload.gpus", []),
        ("workload.gpus", DELETE),
        ("workload", DELETE),
        ("target", DELETE),
        ("target", {"workdir": "/lustre/me"}),
        ("workload.stesp", 3),
        ("worklaod", {}),
        ("workload.recipe", "maxtext/llama2-70"),
        ("workload.gpu_type", "h1000"),
        ("workload.steps", [1, 2]),
        ("workload.time_limit", "1 hour"),
        ("workload.image", "-v /:/host"),
        ("parallelism.tp", 0),
        ("model.layer", 2),
        ("env.NCCL_DEBUG", 1),
        ("measure.window", "first"),
        ("measure.window", [1]),
        ("measure.tolerance", 1.5),
        ("profile", {"tool": "perf"}),
        ("profile", {}),
        ("telemetry", {"interval": "5 minutes"}),
        ("target.scheduler", "slurmm"),
        ("target.max_jobs", 0),
        ("target.acount", "mine"),
        ("target", {"scheduler": "local", "account": "mine"}),
        ("target.secrets", ["not a name"]),
        ("target.gpu_request", "all"),
        ("framework.confg", {}),
        ("framework.vboost", True),
        ("framework.config", {"a": {"b": 1}}),
        ("sweep", {"parallelism.tp": 4}),
        ("sweep", {"parallelism.tp": []}),
    ],
)
def test_an_error_of_structure_is_rejected_here_and_by_llmb(
    spec: jsonschema.Draft202012Validator, key: str, value: Any
) -> None:
    tables = changed(key, value)
    assert not spec.is_valid(tables)
    with pytest.raises(llmb.SpecError):
        llmb.load(tables)


@pytest.mark.parametrize("file", RECIPES, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_a_recipe_is_valid(recipe: jsonschema.Draft202012Validator, file: Path) -> None:
    assert errors(recipe, tomllib.loads(file.read_text())) == []


@pytest.fixture(scope="module")
def recipe() -> jsonschema.Draft202012Validator:
    return validator("recipe")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("steps = 50\n", ""),
        ("steps = 50\n", 'steps = "50"\n'),
        ("steps = 50\n", "steps = 50\nstepss = 50\n"),
        ('flop_formula = "causal"', 'flop_formula = "half"'),
        ("\nheads = ", "\nhead = "),
    ],
)
def test_an_error_in_a_recipe_is_rejected(recipe: jsonschema.Draft202012Validator, old: str, new: str) -> None:
    [file] = [each for each in RECIPES if each.name == "llama2-tiny.toml"]
    text = file.read_text()
    assert old in text
    assert not recipe.is_valid(tomllib.loads(text.replace(old, new)))


DECLARED = """
launch = "torchrun"
files = ["train.py"]
command = ["train.py", "--steps={steps}"]
[options.width]
default = 3
[log]
line = "iter {step}: loss {loss}, time {time_ms}ms"
end = "done training"
first_step = 0
[recipe]
steps = 20
seq_len = 128
params = 50e3
global_batch_size = "8 * gpus"
"""


@pytest.mark.parametrize(
    ("old", "new", "is_valid"),
    [
        ("", "", True),
        ('launch = "torchrun"', 'launch = "mpirun"', False),
        ("[log]", "[logs]", False),
        ("first_step = 0", "first_step = -1", False),
        ("steps = 20", 'steps = "20"', False),
        ("default = 3", "", False),
    ],
)
def test_a_declared_framework_is_checked(old: str, new: str, is_valid: bool) -> None:
    assert validator("framework file").is_valid(tomllib.loads(DECLARED.replace(old, new))) == is_valid


@pytest.mark.parametrize(
    ("table", "is_valid"),
    [
        ({"scheduler": "slurm", "host": "eos", "workdir": "/lustre/me", "partition": "batch"}, True),
        ({"host": "eos"}, True),  # [target] of a spec adds the scheduler
        ({"scheduler": "slurm", "sbatch": {"nice": 10}}, True),
        ({"scheduler": "slurm", "container": {}}, False),  # a key of another scheduler
        ({"scheduler": "slrm"}, False),
        ({"scheduler": "slurm", "partitoin": "batch"}, False),
        ({"scheduler": "slurm", "name": "eos"}, False),
        ({"scheduler": "local", "max_jobs": 0}, False),
    ],
)
def test_a_table_of_the_targets_file_is_checked(table: dict[str, Any], is_valid: bool) -> None:
    assert validator("targets file").is_valid({"eos": table}) == is_valid
    assert not validator("targets file").is_valid({**table, "eos": {}})  # keys outside of a table


def classes() -> Iterator[type]:
    """Yield every class of a table that a user writes, with those of nested tables."""
    plugins = llmb.PluginRegistry()
    kinds: dict[str, Callable[[str], Any]] = {"framework": plugins.framework, "scheduler": plugins.scheduler}
    options = [kinds[each.kind](each.name).options for each in plugins.installed if each.kind in kinds]
    found = [*filter(None, TABLES.values()), RecipeTable, DeclaredFile, *options]
    for cls in found:
        yield cls
        nested = {each for kind in get_type_hints(cls).values() for each in (kind, *getattr(kind, "__args__", ()))}
        found += sorted({each for each in nested if attrs.has(each)} - {*found}, key=str)


@pytest.mark.parametrize("cls", [*classes()], ids=lambda cls: cls.__name__)
def test_every_key_has_a_description(cls: type) -> None:
    texts = field_texts(cls)
    assert [field.name for field in attrs.fields(cls) if not texts.get(field.name)] == []
    assert [text for text in texts.values() if not text.description.endswith((".", ")"))] == []


@pytest.mark.parametrize("kind", ["spec", "targets file", "recipe", "framework file"])
def test_descriptions_are_markdown(kind: Any) -> None:
    assert "``" not in json.dumps(llmb.json_schema(kind))


def conditions(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        yield from [schema["if"]] if "if" in schema else []
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from conditions(part)


@pytest.mark.parametrize("kind", ["spec", "targets file", "recipe", "framework file"])
def test_no_condition_forbids_keys_in_a_strict_editor(kind: Any) -> None:
    """Tombi takes a condition that excludes keys for the schema of the table, and warns of each key in the file."""
    found = [each for each in conditions(llmb.json_schema(kind)) if "not" in each]
    assert [each for each in found if each.get("additionalProperties") is not True] == []


def test_a_spec_begins_with_the_line_for_editors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    llmb_command = command_line(capsys)
    done = llmb_command("recipes", "maxtext/llama2-tiny", "--toml", "--schema")
    assert done.out.startswith("#:schema ./llmb.schema.json\n# a tiny")
    file = tmp_path / "llmb.schema.json"
    assert llmb_command("schema", "-o", file).status == 0
    assert json.loads(file.read_text()) == json.loads(json.dumps(llmb.json_schema()))
