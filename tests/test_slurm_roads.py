"""End-to-end runs on a real Slurm cluster: MaxText over SSH, and a large recipe with stand-ins."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.deadline import DEADLINE_S
from parts.enroot import SQUASHFS
from parts.slurm import Cluster, missing
from parts.sshd import SSHD, Sshd
from parts.training import no_other_training

pytestmark = [pytest.mark.real, pytest.mark.slow]

NETWORK = re.compile(r"^(UV|PIP)_|CERT|PROXY|proxy")
STANDINS = Path(__file__).parent / "standins"


class LargeRecipe:
    """A run of llama2-70b on 8 nodes of 8 GPUs, with stand-ins for pyxis, enroot, nsys and Python."""

    def __init__(self, toy: Any, cluster: Cluster) -> None:
        self.toy = toy
        self.workdir = toy.workdir
        self.workdir.mkdir()
        self.spec = toy.folder / "llama2-70b.toml"
        # the stand-ins come first on the PATH of a login, which the job inherits
        self.env = {"PATH": f"{STANDINS}:/usr/local/bin:/usr/bin:/bin:/usr/sbin", **cluster.env}
        workload = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
        target = {"scheduler": "slurm", "workdir": str(toy.workdir), "exclusive": False, "mem": "1G"}
        self.spec.write_text(tomli_w.dumps({"workload": workload, "target": target}))

    def run(self, *options: str) -> dict[str, Any]:
        process = self.toy.start("run", str(self.spec), "--json", *options, env=self.env)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert out, err
        return dict(json.loads(out)["runs"][0])

    def journal(self, *words: str) -> list[list[str]]:
        """Return the lines that begin with a word, split into words."""
        lines = [line.split() for line in (self.workdir / "standins").read_text().splitlines()]
        return [line for line in lines if line[: len(words)] == list(words)]

    def env_of(self, run_id: str, kind: str) -> list[dict[str, str]]:
        """Return the environment of each rank of a program, first of the profile, then of the performance run."""
        files = (self.workdir / "runs" / run_id).glob(f"env.{kind}.*")
        found = [dict(entry.split("=", 1) for entry in file.read_text().split("\0") if "=" in entry) for file in files]
        return sorted(found, key=lambda env: int(env["RANK"]))


@pytest.fixture(scope="module")
def eight_nodes() -> Iterator[Cluster]:
    if lacking := missing():
        pytest.skip(lacking)
    with Cluster(nodes=8, accounting=False) as cluster:
        yield cluster


@pytest.fixture
def large(toy_slurm: Any, eight_nodes: Cluster) -> LargeRecipe:
    return LargeRecipe(toy_slurm, eight_nodes)


def test_llama2_70b_runs_its_three_phases_in_order_with_ranks_and_arguments(large: LargeRecipe) -> None:
    run = large.run()
    assert (run["state"], run["verdict"]) == ("completed", "pass")
    assert run["metrics"]["step_time_s"] == 7.0
    assert len(large.journal("enroot")) == 1
    _the_phases_follow_one_another(large)
    _every_phase_runs_in_the_container(large, run["run_id"])
    _the_ranks_are_all_there_and_know_who_they_are(large)
    _the_environment_is_the_recipes(large, run["run_id"])
    _the_record_says_so(large, run)


def _the_phases_follow_one_another(large: LargeRecipe) -> None:
    kinds = [line[0] for line in large.journal() if line[0] in ("train", "convert")]
    assert kinds == ["train"] * 64 + ["convert"] + ["train"] * 64
    profile, performance = large.journal("train")[:64], large.journal("train")[64:]
    assert all("steps=15" in line for line in profile)
    assert all("steps=50" in line for line in performance)


def _every_phase_runs_in_the_container(large: LargeRecipe, run_id: str) -> None:
    contained = [line for line in large.journal("srun") if len(line) > 1]
    assert len(contained) == 3
    [options] = {tuple(sorted(line[1:])) for line in contained}
    [image] = large.workdir.glob("cache/images/*.sqsh")
    assert f"--container-image={image}" in options
    assert {"--container-writable", "--no-container-mount-home"} <= set(options)
    directory = large.workdir / "runs" / run_id
    assert f"--container-workdir={directory}" in options
    [mounts] = [option for option in options if option.startswith("--container-mounts=")]
    assert f"{directory}:{directory}" in mounts


def _the_ranks_are_all_there_and_know_who_they_are(large: LargeRecipe) -> None:
    lines = large.journal("train")
    assert Counter(int(line[1]) for line in lines) == dict.fromkeys(range(64), 2)
    for _, rank, local_rank, node_rank, world_size, *_ in lines:
        assert (int(local_rank), int(node_rank), world_size) == (int(rank) % 8, int(rank) // 8, "64")
    assert {line[5].partition(":")[0] for line in lines} == {"node1"}
    assert [line[1] for line in large.journal("convert")] == ["0"]
    assert len(large.journal("nsys")) == 128


def _the_environment_is_the_recipes(large: LargeRecipe, run_id: str) -> None:
    for env in large.env_of(run_id, "train"):
        assert env["NVTE_FUSED_ATTN"] == "1"
        assert env["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.94"
        assert "xla_gpu_enable_triton_gemm=false" in env["XLA_FLAGS"]
    with_profile = [env for env in large.env_of(run_id, "train") if ".pbtxt" in env["XLA_FLAGS"]]
    assert len(with_profile) == 64
    assert all("TF_CPP_VMODULE" in env for env in with_profile)


def _the_record_says_so(large: LargeRecipe, run: dict[str, Any]) -> None:
    provenance = tomllib.loads((Path(run["directory"]) / "run.toml").read_text())["provenance"]
    assert provenance["host"] == [f"node{number}" for number in range(1, 9)]
    assert provenance["image"] == "ghcr.io/nvidia/jax:maxtext-2024-12-09"
    assert len(provenance["image_sha256"]) == 64


def test_a_failed_conversion_stops_the_job_before_the_performance_phase(large: LargeRecipe) -> None:
    (large.workdir / "standins.broken-converter").touch()
    run = large.run()
    assert run["state"] == "failed"
    assert "phase convert, rank 0 on node1: exit code 1" in run["reason"]
    assert "no events in the report" in run["failure"]["evidence"]
    assert len(large.journal("train")) == 64


def test_an_image_file_is_used_as_it_is(large: LargeRecipe, tmp_path: Path) -> None:
    (file := tmp_path / "own.sqsh").write_bytes(SQUASHFS)
    run = large.run("--set", f"workload.image={file}")
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert large.journal("enroot") == []
    assert all(f"--container-image={file}" in line for line in large.journal("srun") if len(line) > 1)
    provenance = tomllib.loads((Path(run["directory"]) / "run.toml").read_text())["provenance"]
    assert provenance["image"] == str(file)
    assert provenance["image_modified"]


# MaxText


@pytest.fixture
def cluster_over_ssh(toy_slurm: Any, monkeypatch: pytest.MonkeyPatch, start_server: Any) -> Sshd:
    if SSHD is None:
        pytest.skip("sshd is not installed")
    network = {name: value for name, value in os.environ.items() if NETWORK.search(name)}  # as in a login
    server = start_server(env={**network, **toy_slurm.cluster.env})
    monkeypatch.delenv("SLURM_CONF")
    return server


def test_maxtext_trains_on_two_nodes_over_ssh(toy_slurm: Any, cluster_over_ssh: Sshd) -> None:
    spec = toy_slurm.folder / "tiny.toml"
    workload = {"recipe": "maxtext/llama2-tiny", "gpu_type": "cpu", "dtype": "fp32", "gpus": 2, "steps": 8}
    place = {"scheduler": "slurm", "host": cluster_over_ssh.host, "workdir": str(toy_slurm.workdir)}
    target = {**place, "gpus_per_node": 1, "mem": "8G", "exclusive": False}
    measure = {"window": [3, 7]}
    spec.write_text(tomli_w.dumps({"workload": workload, "target": target, "measure": measure}))
    with no_other_training():
        process = toy_slurm.start("run", str(spec), "--json")
        out, err = process.communicate(timeout=DEADLINE_S)
    assert out, err
    [run] = json.loads(out)["runs"]
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert run["metrics"]["step_time_s"] > 0
    [record] = toy_slurm.records
    assert toy_slurm.steps_of(record) == list(range(8))
    log = (record / "logs/train.0.log").read_text()
    assert "0: " in log
    assert "1: " in log
    provenance = tomllib.loads((record / "run.toml").read_text())["provenance"]
    assert provenance["host"] == ["node1", "node2"]
