"""``llmb doctor SPEC`` on a real Slurm cluster that lacks, in turn, each item that the command checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import llmb

pytestmark = pytest.mark.real

GPUS = {"gpus": 16, "gpu_type": "h100"}


def diagnosed(toy: Any, **tables: dict[str, Any]) -> dict[str, llmb.DoctorCheck]:
    """Return the checks of a run of 2 nodes with 8 GPUs each, changed by these tables, by name."""
    framework = {"needs_gpus": True, **tables.pop("framework", {})}
    workload = {**GPUS, **tables.pop("workload", {})}
    batch = {"global_batch_size": workload["gpus"]}
    spec = toy.spec(workload=workload, framework=framework, parallelism=batch, **tables)
    return {each.name: each for each in llmb.doctor(workload=llmb.load(spec))}


def failed(checks: dict[str, llmb.DoctorCheck]) -> set[str]:
    return {name for name, check in checks.items() if check.ok is False}


@pytest.fixture
def partitions(slurm: Any) -> Iterator[None]:
    """Add partitions that the tests must not use, that are down, or that are small."""
    lines = {
        "closed": "AllowAccounts=proj2",
        "groups": "AllowGroups=nogroup",
        "away": "State=DOWN",
        "narrow": "MaxNodes=1",
        "wide": "MinNodes=3",
        "meagre": "MaxMemPerNode=100",
    }
    for name, settings in lines.items():
        slurm.order("scontrol", "create", f"PartitionName={name}", "Nodes=node1,node2", settings)
    yield
    for name in lines:
        slurm.order("scontrol", "delete", f"PartitionName={name}")


@pytest.mark.smoke
def test_a_run_that_would_start_passes_every_check(toy_slurm: Any) -> None:
    checks = diagnosed(toy_slurm)
    assert failed(checks) == set()
    assert checks["nodes"].detail == "batch has 4 nodes with H100 GPUs; the job needs 2"
    assert checks["time limit"].detail == "60 minutes; batch allows 1-00:00:00"
    assert checks["submission"].detail == "sbatch --test-only accepts the jobs"
    assert not toy_slurm.workdir.exists()
    assert toy_slurm.records == []


@pytest.mark.usefixtures("partitions")
@pytest.mark.parametrize(
    ("tables", "name", "detail", "remedy"),
    [
        ({"target": {"partition": "nosuch"}}, "partition", "nosuch does not exist", 'set `partition = "'),
        ({"target": {"partition": "away"}}, "partition", "away: 2 nodes", "once `sinfo -p away` reports it up"),
        (
            {"target": {"partition": "closed", "account": "proj1"}},
            "partition",
            "closed is only for accounts proj2; yours: proj1",
            "set partition, account or qos in [target]",
        ),
        ({"target": {"partition": "groups"}}, "partition", "groups is only for groups nogroup", "set partition, "),
        ({"target": {"account": "nosuch"}}, "account", "you may not use the account nosuch", 'set `account = "proj1"'),
        ({"target": {"qos": "nosuch"}}, "submission", "Invalid qos specification", "--set target.qos=NAME`"),
        (
            {"target": {"sbatch": {"no-such": 1}}},
            "submission",
            "sbatch would reject the job: unrecognized option '--no-such=1'",
            "correct [target.sbatch]",
        ),
        ({"target": {"partition": "short"}}, "time limit", "60 minutes; short allows 2:00", 'set `time_limit = "2m"`'),
        ({"target": {"partition": "narrow"}}, "nodes", "narrow allows at most 1 node for a job", "use fewer GPUs, or"),
        ({"target": {"partition": "wide"}}, "nodes", "wide requires at least 3 nodes for a job", "use more GPUs, or"),
        ({"target": {"partition": "meagre"}}, "memory", "mem is 200M; meagre allows 100 MB", 'set `mem = "100M"`'),
        ({"workload": {"gpus": 64}}, "nodes", "batch has 4 nodes with H100 GPUs; the job needs 8", "use fewer GPUs"),
        (
            {"workload": {"gpu_type": "a100"}},
            "GPU type",
            "batch has 0 nodes with A100 GPUs (4 have gpu:h100:8); the job needs 2",
            "or a partition with more such nodes; `sinfo ",
        ),
        (
            {"target": {"gpus_per_node": 16}},
            "nodes",
            "batch has 0 nodes with 16 GPUs or more; the job needs 1",
            "set `gpus_per_node = 8` in [target]",
        ),
        ({"target": {"mpi": "pmix_v99"}}, "MPI", "not pmix_v99", 'set `mpi = "pmix"` in [target]'),
        ({"workload": {"image": "example.org/x:24.09"}}, "pyxis", "does not support container images", "pyxis"),
        ({"framework": {"task": "a", "task_space_gb": 1e6}}, "free space", "1e+06 GB needed", "target.workdir"),
        ({"framework": {"secrets": ["TOY_TOKEN"]}}, "TOY_TOKEN", "not set", "run `export TOY_TOKEN=...` before llmb"),
        (
            {"target": {"workdir": "/etc/hosts/llmb"}},
            "work directory",
            "cannot write /etc/hosts/llmb",
            'set `workdir = "/path/to/folder"` in [target]',
        ),
    ],
)
def test_a_run_that_would_not_start_is_reported_with_the_reason(
    toy_slurm: Any, tables: dict[str, Any], name: str, detail: str, remedy: str
) -> None:
    check = diagnosed(toy_slurm, **tables)[name]
    below = " and accounts below them"  # which Slurm admits since 23.02, so that the job might start
    assert check.ok is (None if below in check.detail else False)
    assert detail in check.detail.replace(below, "")
    assert remedy in check.remedy


def test_nodes_that_are_down_do_not_count(toy_slurm: Any, slurm: Any) -> None:
    slurm.order("scontrol", "update", "NodeName=node[2-4]", "State=DRAIN", "Reason=test")
    try:
        check = diagnosed(toy_slurm)["nodes"]
    finally:
        slurm.order("scontrol", "update", "NodeName=node[2-4]", "State=RESUME")
    assert (check.ok, check.detail) == (False, "1 of 4 nodes of batch with H100 GPUs are up; the job needs 2")
    assert "sinfo -R" in check.remedy


def test_a_cluster_without_blocks_and_imex_cannot_run_on_an_nvlink_domain(toy_slurm: Any) -> None:
    checks = diagnosed(toy_slurm, workload={"gpu_type": "gb200"}, target={"gpus_per_node": 4})
    domain = checks["NVLink domain"]
    assert (domain.ok, domain.remedy.partition(",")[0]) == (False, "set `segment = false` in [target]")
    assert re.search(r"no blocks of nodes for batch \(TopologyPlugin is .*\); the job needs 1 x 4 nodes", domain.detail)
    assert checks["IMEX"].ok is None
    assert checks["IMEX"].detail.startswith("cannot be checked here")
    assert "srun --partition=batch nvidia-imex-ctl -q" in checks["IMEX"].remedy
    assert "NVLink domain" not in diagnosed(
        toy_slurm, workload={"gpu_type": "gb200"}, target={"gpus_per_node": 4, "segment": False}
    )


def test_recipes_that_are_too_large_for_the_cluster_are_unavailable(toy_slurm: Any, write_target: Any) -> None:
    write_target("eos", scheduler="slurm", workdir=str(toy_slurm.workdir))
    done = toy_slurm.llmb("doctor", "eos", "--json", env={"HF_TOKEN": "hf_x"})
    checks = {each["name"]: each["detail"] for each in json.loads(done.stdout)["checks"]}
    assert "unavailable: llama2-70b (batch has 4 nodes with H100 GPUs; the job needs 8)" in checks["maxtext recipes"]


def test_the_command_takes_a_target_and_a_spec(toy_slurm: Any, write_target: Any) -> None:
    write_target("eos", scheduler="slurm", workdir=str(toy_slurm.workdir), partition="short")
    spec = toy_slurm.spec(workload={"time_limit": "1m"})
    by_spec, by_both = toy_slurm.llmb("doctor", spec), toy_slurm.llmb("doctor", "eos", spec)
    assert (by_spec.returncode, by_both.returncode) == (0, 0), by_both.stdout
    assert "batch allows" in by_spec.stdout
    assert "short allows" in by_both.stdout
    Path(spec).write_text("[workload]\n")
    assert toy_slurm.llmb("doctor", spec).returncode == 2
