"""Plans for a Slurm cluster, made without a cluster and without any effect."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.enroot import SQUASHFS
from parts.pages import blocks

import llmb

GPUS = [64, 128, 256, 512, 1024, 2048]


def directives(script: str) -> set[str]:
    return {line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH")}


@pytest.fixture
def document(toy: Any, tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "w.toml"
    workload = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": ["bf16", "fp8"], "gpus": GPUS}
    target = {"scheduler": "slurm", "host": "eos", "workdir": "/lustre/me", "account": "proj", "partition": "batch"}
    file.write_text(tomli_w.dumps({"workload": workload, "target": target}))
    done = toy.llmb("run", str(file), "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    assert not toy.home.exists()
    return dict(json.loads(done.stdout))


@pytest.fixture
def planned(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document["runs"])


def test_llama2_70b_at_every_published_scale(planned: list[dict[str, Any]]) -> None:
    assert [run["gpus"] for run in planned] == GPUS * 2
    for run in planned:
        nodes = run["gpus"] // 8
        assert run["job"]["nodes"] == nodes
        requested = {f"--nodes={nodes}", "--ntasks-per-node=8", "--gres=gpu:8", "--exclusive", "--mem=0"}
        assert requested | {"--account=proj", "--partition=batch", "--time=01:00:00"} <= directives(run["script"])
        phases = [line.split()[1:3] for line in run["script"].splitlines() if line.startswith("phase ")]
        first, every = '"${first_rank[@]}"', '"${all_ranks[@]}"'
        assert phases == [["prof", every], ["convert", first], ["perf", every]]


def test_the_image_is_imported_once_for_all_runs(document: dict[str, Any], planned: list[dict[str, Any]]) -> None:
    keys = {step["key"] for run in planned for step in run["preparation"]}
    assert keys == document["preparations"].keys()
    [step] = document["preparations"].values()
    assert step["kind"] == "container image"
    assert "docker://ghcr.io#nvidia/jax:maxtext-2024-12-09" in step["script"]
    image = f"/lustre/me/cache/images/{step['key']}.sqsh"
    assert f"--container-image={image}" in planned[0]["script"]


@pytest.mark.parametrize(("command", "complete"), [("cp", True), ("ln", True), ("ln -s", False)])
def test_an_image_file_of_the_site_counts_as_complete(toy: Any, tmp_path: Path, command: str, complete: bool) -> None:
    (tmp_path / "work/cache/images").mkdir(parents=True)
    (tmp_path / "nemo-25.11.01.sqsh").write_bytes(SQUASHFS)
    [page] = [each.text for each in blocks("docs/how-to/containers.md") if each.note("tested by")]
    script = page.replace("/lustre/me/llmb", str(tmp_path / "work")).replace("/site/images", str(tmp_path))
    subprocess.run(["bash", "-ec", script.replace("cp ", f"{command} ")], check=True)
    workload = {"recipe": "megatron_bridge/llama3.1-8b@25.12", "gpu_type": "h100", "dtype": "bf16", "gpus": 8}
    spec = tmp_path / "w.toml"
    spec.write_text(
        tomli_w.dumps({"workload": workload, "target": {"scheduler": "slurm", "workdir": f"{tmp_path}/work"}})
    )
    [run] = json.loads(toy.llmb("run", str(spec), "--dry-run", "--json").stdout)["runs"]
    [image] = [each for each in run["preparation"] if each["kind"] == "container image"]
    assert image["exists"] is complete


def test_errors_of_the_target_are_reported_together_with_their_keys(toy: Any, tmp_path: Path) -> None:
    target = {
        "scheduler": "slurm",
        "acount": "x",
        "runtime": "docker",
        "nice": "high",
        "sbatch": {"N": 1, "licenses": ["a"]},
    }
    done = toy.llmb("validate", toy.spec(target=target), "--json")
    assert done.returncode == 2
    errors = {error["key"]: error for error in json.loads(done.stdout)["errors"]}
    assert errors["target.acount"]["nearest"] == "account"
    assert errors["target.runtime"]["expected"] == '"pyxis" or "venv" or "none"'
    assert "target.nice" in errors
    assert any(key.startswith("target.sbatch") for key in errors)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("gres", "gpu_request"),
        ("time", "workload.time_limit"),
        ("nodes", "workload.gpus"),
        ("cpus-per-task", "sbatch.cpus-per-task"),
        ("mail_user", "sbatch.mail-user"),
        ("gpus-per-node", "gpus_per_node"),
        ("container_mounts", "mounts"),
        ("container-image", "workload.image"),
    ],
)
def test_an_option_of_sbatch_in_target_is_reported_with_the_key_that_sets_it(key: str, meant: str) -> None:
    workload = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
    with pytest.raises(llmb.SpecError) as caught:
        llmb.load({"workload": workload, "target": {"scheduler": "slurm", "workdir": "/lustre/me", key: "1"}})
    assert str(caught.value).startswith(f"target.{key}: unknown key; ")
    assert str(caught.value).endswith(f" (did you mean '{meant}'?)")


@pytest.mark.parametrize(("key", "meant"), [("time", "workload.time_limit"), ("cpus-per-task", "sbatch.cpus-per-task")])
def test_an_option_of_sbatch_in_a_named_target_is_reported_with_the_key_that_sets_it(
    key: str, meant: str, write_target: Callable[..., None]
) -> None:
    write_target("eos", scheduler="slurm", workdir="/lustre/me", **{key: "1"})
    with pytest.raises(llmb.SpecError, match=re.escape(f"did you mean '{meant}'")):
        llmb.doctor("eos")


def test_a_misspelt_key_of_a_named_target_is_not_reported_as_missing_as_well(write_target: Callable[..., None]) -> None:
    write_target("eos", scheduler="slurm", host="login.eos", work_dir="/lustre/me")
    with pytest.raises(llmb.SpecError, match=r"eos\.work_dir: unknown key; ") as caught:
        llmb.doctor("eos")
    assert len(caught.value.faults) == 1
