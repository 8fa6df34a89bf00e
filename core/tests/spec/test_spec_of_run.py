"""``run.toml``: a run as a spec of its own, which loads to the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import tomli_w

import llmb
from llmb.plugins.registry import PluginRegistry
from llmb.spec.run_ids import draw_run_ids
from llmb.spec.spec_of_run import build_run_toml, read_run_toml
from llmb.version import VERSION

PROVENANCE = {"llmb": "0", "plugins": {"llmb-maxtext": "0"}, "created": "2026-01-01T00:00:00+00:00"}


def started(workload: llmb.Workload) -> tuple[llmb.RunSpec, ...]:
    return draw_run_ids(workload).runs


def again(placed: llmb.RunSpec, folder: Path) -> tuple[Path, llmb.RunSpec]:
    file = folder / "run.toml"
    file.write_text(tomli_w.dumps(build_run_toml(placed, PROVENANCE)), encoding="utf-8")
    return file, read_run_toml(file, PluginRegistry())


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"workload": {"steps": 70, "time_limit": "90m", "repeats": 2}},
        {"measure": {"window": [12, 40], "tolerance": 0.1}},
        {"measure": {"window": "last"}},
        {"workload": {"image": "example.org/other:1"}},
        {"workload": {"image": "ghcr.io/nvidia/jax:maxtext-2024-12-09"}},
        {"workload": {"gpus": 96}, "parallelism": {"fsdp": 96, "global_batch_size": 192}},
        {"parallelism": {"pp": 2, "vp": 2, "micro_batch_size": 1}},
        {"parallelism": {"vp": 1}},
        {"model": {"layers": 8, "vocab": 1000}},
        {"framework": {"config": {"a": 1, "b": "x", "c": True, "d": 0.5}}},
        {"env": {"A": "1", "QUOTED": "a \"b\" 'c' \\ \n é"}},
        {"mounts": {"/a": "/x", "/b.c": "/y:ro", "/d": "/z:rw"}},
        {"profile": {"tool": "nsys", "start_step": 3, "stop_step": 9, "ranks": [0, 2], "gpu_metrics": True}},
        {"profile": {"tool": "nccl-trace"}},
        {"target": {"workdir": "/work", "lock": "/a.lock"}},
    ],
)
def test_a_run_loads_again_as_it_was(spec: Any, tmp_path: Path, tables: dict[str, Any]) -> None:
    for placed in started(spec.big(**tables).load()):
        file, back = again(placed, tmp_path)
        assert back.run == placed.run
        assert back.target == placed.target
        [loaded] = started(llmb.load(file))
        assert loaded.run.id != placed.run.id
        own = {"id": placed.run.id, "paths": placed.run.paths, "repeat": placed.run.repeat}
        assert attrs.evolve(loaded.run, **own) == placed.run


def test_a_run_of_a_named_target_loads_again_where_that_name_is_gone(
    spec: Any, tmp_path: Path, write_targets: Any
) -> None:
    targets = write_targets('[box]\nscheduler = "local"\nworkdir = "/box"\nlock = "/box.lock"\n')
    spec.usual()
    [placed] = started(spec.load(target="box"))
    targets.unlink()
    file, back = again(placed, tmp_path)
    assert (back.target, back.target.name) == (placed.target, "box")
    assert llmb.load(file).runs[0].target == placed.target


def test_a_record_can_be_run_elsewhere(spec: Any, tmp_path: Path, write_targets: Any) -> None:
    write_targets('[box]\nscheduler = "local"\nworkdir = "/box"\n')
    file, _ = again(started(spec.usual().load())[0], tmp_path)
    [placed] = llmb.load(file, target="box", overrides=["workload.steps=60"]).runs
    assert (placed.target.workdir, placed.run.steps) == ("/box", 60)


def test_every_default_is_written_out(spec: Any, tmp_path: Path) -> None:
    import tomllib

    file, _ = again(started(spec.usual().load())[0], tmp_path)
    tables = tomllib.loads(file.read_text())
    assert tables["workload"].keys() == {"recipe", "gpu_type", "dtype", "gpus", "steps", "time_limit"}
    assert tables["parallelism"].keys() == {
        "tp", "pp", "vp", "cp", "ep", "etp", "fsdp", "micro_batch_size", "global_batch_size",
    }  # fmt: skip
    assert tables["model"].keys() >= {"layers", "hidden", "ffn", "heads", "query_groups", "vocab", "seq_len"}
    assert tables["measure"] == {"window": [10, 49], "tolerance": 0.05}
    assert tables["target"].keys() >= {"scheduler", "workdir", "gpus_per_node", "lock"}
    assert tables["provenance"].keys() == {"llmb", "plugins", "created", "run_id", "repeat"}


def test_provenance_is_ignored_by_the_loader(spec: Any) -> None:
    [run] = spec.usual(provenance={"run_id": "abcde-x", "anything": 3}).runs()
    assert run.id == ""


def test_a_run_of_a_changed_model_knows_the_published_one(spec: Any) -> None:
    [placed] = spec.usual(model={"layers": 8, "vocab": 1000}).load().runs
    published = llmb.load_recipe(placed.run.recipe).model
    assert (placed.run.model.vocab, placed.run.published_model) == (1000, published)


def test_a_changed_model_keeps_the_vocabulary_of_the_published_flops() -> None:
    from llmb.spec.assemble_run import override_model

    published = llmb.Model(layers=2, hidden=8, ffn=8, heads=2, query_groups=2, vocab=100, seq_len=8, flops_vocab=128)
    deeper, smaller = (override_model(published, stated) for stated in ({"layers": 4}, {"vocab": 200}))
    assert (deeper and deeper.flops_vocab, smaller and smaller.flops_vocab) == (128, None)


def test_a_spec_without_a_run_id_is_no_record(spec: Any) -> None:
    with pytest.raises(llmb.RecordError, match=r"provenance\.run_id is missing"):
        read_run_toml(spec.usual().file, PluginRegistry())


@pytest.mark.parametrize("key", ["repeat", "repeats", "sweep"])
def test_an_invalid_value_of_the_provenance_is_a_damaged_record(spec: Any, tmp_path: Path, key: str) -> None:
    [placed] = started(spec.usual().load())
    tables = build_run_toml(placed, PROVENANCE)
    file = tmp_path / "run.toml"
    file.write_text(tomli_w.dumps({**tables, "provenance": {**tables["provenance"], key: "x"}}), encoding="utf-8")
    with pytest.raises(llmb.RecordError, match=r'is damaged: \[provenance\]: Run.*: invalid value "x"'):
        read_run_toml(file, PluginRegistry())


def test_a_capture_has_the_recipe_s_steps_if_the_spec_states_none(spec: Any) -> None:
    spec.write(
        '[workload]\nrecipe = "nemo_launcher/llama3.1-8b"\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 8\n'
        '[profile]\ntool = "nccl-trace"\n[target]\nscheduler = "local"\n'
    )

    assert [spec.runs(*more)[0].steps for more in ([], ["workload.steps=20"], ['profile.tool="nsys"'])] == [10, 20, 50]


@pytest.mark.parametrize(
    ("name", "now"), [("llmb-maxtext", "0.1.0 is installed"), ("llmb-gone", "it is not installed")]
)
def test_an_error_of_a_record_names_the_plugins_that_have_changed_since(
    spec: Any, tmp_path: Path, name: str, now: str
) -> None:
    [placed] = started(spec.usual().load())
    tables = build_run_toml(placed, {**PROVENANCE, "plugins": {name: "0", "llmb-local": "0.1.0"}})
    file = tmp_path / "run.toml"
    file.write_text(tomli_w.dumps({**tables, "framework": {"gone": 1}}), encoding="utf-8")
    with pytest.raises(llmb.SpecError) as caught:
        read_run_toml(file, PluginRegistry())
    unknown, changed = map(str, caught.value.faults)
    assert "framework.gone: unknown key" in unknown
    assert changed == f"{file}: {name} 0 wrote this record, and {now}"


@pytest.mark.parametrize(("writer", "is_newer"), [("99.0", True), (VERSION, False), ("0", False), ("?", False)])
def test_an_error_of_a_record_names_the_newer_llmb_that_wrote_it(
    spec: Any, tmp_path: Path, writer: str, is_newer: bool
) -> None:
    [placed] = started(spec.usual().load())
    tables = build_run_toml(placed, {**PROVENANCE, "llmb": writer})
    file = tmp_path / "run.toml"
    file.write_text(tomli_w.dumps({**tables, "workload": {**tables["workload"], "fidelity": 3}}), encoding="utf-8")
    with pytest.raises(llmb.SpecError) as caught:
        read_run_toml(file, PluginRegistry())
    *newer, unknown, _plugin = caught.value.faults
    assert unknown.key == "workload.fidelity"
    message = (
        f"{file}: llmb 99.0 wrote this record, and this is llmb {VERSION}; "
        "upgrade with `pip install --upgrade llmb`, or with `git pull` in a clone of llmb"
    )
    assert [*map(str, newer)] == ([message] if is_newer else [])
