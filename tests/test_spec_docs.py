"""docs/spec.md documents every key of a spec and no other, and its examples are valid."""

from __future__ import annotations

import functools
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest
import tomli_w

import llmb
from llmb.spec.assemble_run import TOLERANCE
from llmb.spec.workload_tables import TABLES

PAGE = (Path(__file__).parents[1] / "docs/spec.md").read_text()
SECTIONS = {
    table: text
    for title, text in re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE)
    for table in re.findall(r"`\[(\w+)\]`", title)
}
ROWS = [
    (table, *(cell.strip(" `") for cell in line.strip("|").split(" | ")[:4]))
    for table, text in SECTIONS.items()
    for line in text.splitlines()
    if re.match(r"\| `\w+` \|", line)
]
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
BASE = {
    "workload": {"recipe": "nemo_launcher/grok1-314b", "gpu_type": "h100", "dtype": "bf16", "gpus": 512},
    "target": {"scheduler": "slurm", "workdir": "/lustre/me"},
}


def of_release(name: str, gpu_type: str, dtype: str, gpus: int) -> list[str]:
    """Return the overrides for a configuration of Megatron-Bridge's release 26.06."""
    recipe = f'workload.recipe="megatron_bridge/{name}@26.06"'
    return [recipe, f'workload.gpu_type="{gpu_type}"', f'workload.dtype="{dtype}"', f"workload.gpus={gpus}"]


DEEPSEEK = of_release("deepseek-v3", "gb200", "fp8", 256)
GPT_OSS = of_release("gpt-oss-120b", "gb300", "bf16", 64)
SUPER = of_release("nemotron3-super-120b", "gb300", "bf16", 64)
NEEDED = {
    "variant": of_release("llama3.1-70b", "gb300", "fp8", 64),
    "pipeline_layout": [*DEEPSEEK, "model.layers=7", "model.mtp_depth=0", "parallelism.pp=4", "parallelism.vp=1"],
    **dict.fromkeys(("expert_ffn", "shared_expert_ffn", "dense_layers", "mla"), DEEPSEEK),
    **dict.fromkeys(("head_size", "sliding_window", "full_attention_every"), GPT_OSS),
    **dict.fromkeys(("latent_size", "mtp_depth", "mtp_pattern", "mamba"), SUPER),
    "layer_pattern": [*SUPER, "model.layers=4"],
}
"""Overrides of the base by the key whose example needs them."""


@functools.cache
def _registry() -> llmb.PluginRegistry:
    """Return one registry for all examples, which reads each recipe once."""
    return llmb.PluginRegistry()


def load(folder: Path, tables: dict[str, Any], *overrides: str) -> tuple[llmb.RunSpec, ...]:
    """Return the runs of these tables over those of a spec, where both targets of the page are known."""
    targets = Path(os.environ["XDG_CONFIG_HOME"], "llmb/targets.toml")
    targets.parent.mkdir(parents=True)
    [eos] = (text for text in EXAMPLES if text.startswith("[eos]"))
    targets.write_text(eos + eos.replace("[eos", "[tahoe"))
    file = folder / "spec.toml"
    file.write_text(tomli_w.dumps(BASE | tables))
    return llmb.load(file, overrides=overrides, registry=_registry()).runs


def test_every_table_has_its_section() -> None:
    assert set(SECTIONS) == {*TABLES, "sweep"}


@pytest.mark.parametrize("table", [name for name, keys in TABLES.items() if keys])
def test_every_key_has_its_row_and_no_other_and_what_is_required_says_so(table: str) -> None:
    told = {key: default == "required" for name, key, _, default, _ in ROWS if name == table}
    assert told == {field.name: field.default is attrs.NOTHING for field in attrs.fields(TABLES[table])}


@pytest.mark.parametrize(("table", "key", "example"), [(row[0], row[1], row[4]) for row in ROWS])
def test_the_example_of_a_key_is_without_fault(tmp_path: Path, table: str, key: str, example: str) -> None:
    assert example.startswith(f"{key} = ")
    needed = ['profile.tool="nsys"'] if table == "profile" and key != "tool" else NEEDED.get(key, [])
    assert load(tmp_path, {}, *needed, f"{table}.{example}".replace("\\|", "|"))


@pytest.mark.parametrize("text", [text for text in EXAMPLES if not text.startswith("[eos]")])
def test_an_example_of_tables_is_without_fault(tmp_path: Path, text: str) -> None:
    runs = load(tmp_path, tomllib.loads(text))
    assert len(runs) == (12 if "repeats" in text else 8 if "[sweep]" in text else 1)


def test_the_tolerance_that_is_told_is_that_of_a_spec_without_one() -> None:
    assert ("measure", "tolerance", str(TOLERANCE)) in [(table, key, default) for table, key, _, default, _ in ROWS]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("parallelism.tp=8", "[parallelism]"),
        ("model.layers=128", "[model]"),
        ("workload.image=other", "workload.image"),
        ("measure.window=[5,9]", "measure.window"),
        ("workload.steps=10", "workload.steps"),
        ('framework.config={"model.gc_interval"=100}', "[framework]"),
        ("env.NCCL_DEBUG=INFO", "[env]"),
        ('mounts={"/a"="/b"}', "[mounts]"),
        ("target.gpus_per_node=4", "target.gpus_per_node"),
    ],
)
def test_what_makes_a_run_another_one_is_told(tmp_path: Path, override: str, told: str) -> None:
    [placed] = load(tmp_path, {}, override)
    [difference] = placed.run.differences
    assert difference.startswith(told.strip("[]"))
    table = PAGE.partition("A run differs from")[2].partition("\n\nA dry run")[0]
    assert f"`{told}`" in table
