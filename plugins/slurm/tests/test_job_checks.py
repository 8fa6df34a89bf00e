"""Checks of a job for llmb doctor, from facts that this machine's Slurm cannot have, such as blocks of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from llmb import DoctorCheck, FrozenMap, Job, Phase, Target
from llmb_slurm.options import SlurmOptions
from llmb_slurm.parse_squeue_sacct import parse_duration_s
from llmb_slurm.plugin import Slurm

# `scontrol show topology` prints such lines since Slurm 24.11: https://github.com/SchedMD/slurm/blob/slurm-24-11-5-1/
# src/plugins/topology/block/topology_block.c, function _print_topo_record. BlockSize is missing in 24.05.
BLOCK_1 = "BlockIndex=0 Nodes=nvl[001-018] BlockSize=18"
BLOCK_2 = "BlockIndex=1 Nodes=nvl[019-035,040] BlockSize=18"
BLOCKS = {
    "config.TopologyPlugin": "topology/block",
    "config.SwitchType": "switch/nvidia_imex",  # slurm.conf(5) of 24.05 and later
    "block./b1": BLOCK_1,
    "block./b2": BLOCK_2,
    "imex": "READY",  # `nvidia-imex-ctl -q`: docs.nvidia.com/multi-node-nvlink-systems/imex-guide/cmdservice.html
}
FACTS = {
    "slurm": "slurm 24.11.5",
    "default_partition": "nvl",
    "partition.nvl": "up|4:00:00|36|gpu:gb300:4",
    "nodes.nvl": "idle|20|gpu:gb300:4(S:0-1);allocated|16|gpu:gb300:4(S:0-1)",
    "mpi": "none pmi2 pmix pmix_v5",
    **BLOCKS,
}


def checked(
    facts: dict[str, str], *, nodes: int = 36, domain_nodes: int = 18, **options: Any
) -> dict[str, DoctorCheck]:
    job = Job(
        id="a",
        directory="/w/a",
        phases=(Phase(name="train", command=("true",)),),
        nodes=nodes,
        tasks_per_node=4,
        gpus_per_node=4,
        domain_nodes=domain_nodes,
        mpi="pmix",
        time_limit_s=3600,
    )
    target = Target(
        scheduler="slurm",
        workdir="/w",
        options=SlurmOptions(**{"partition": "nvl", **options}),
        gpu_types=("gb300",),
        facts=FrozenMap({key: value for key, value in {**FACTS, **facts}.items() if value}),
    )
    return {each.name: each for each in Slurm().check_job(job, target)}


def test_a_cluster_of_nvlink_domains_passes() -> None:
    checks = checked({})
    assert set(checks) == {"time limit", "nodes", "MPI", "NVLink domain", "IMEX"}
    assert all(each.ok for each in checks.values()), checks
    assert (
        checks["NVLink domain"].detail == "2 blocks of at most 18 nodes; the job needs 2 x 18 nodes, each in one domain"
    )


@pytest.mark.parametrize(
    ("facts", "name", "ok", "detail"),
    [
        ({"block./b2": "BlockIndex=1 Nodes=nvl[019-030] BlockSize=18"}, "NVLink domain", False, "2 x 18 nodes"),
        (
            {"block./b1": BLOCK_1.replace("Size=18", "Size=16"), "block./b2": BLOCK_2.replace("Size=18", "Size=16")},
            "NVLink domain",
            False,
            "segments of 18 nodes are larger than BlockSize 16",
        ),
        (
            {"config.TopologyPlugin": "topology/tree", "block./b1": "", "block./b2": ""},
            "NVLink domain",
            False,
            "Slurm has no blocks of nodes for nvl (TopologyPlugin is topology/tree)",
        ),
        ({"settings.nvl": "MaxNodes=UNLIMITED Topology=other"}, "NVLink domain", None, "lists no blocks"),
        ({"config.TopologyPlugin": "", "block./b1": "", "block./b2": ""}, "NVLink domain", None, "lists no blocks"),
        ({"imex": ""}, "IMEX", None, "runs only on compute nodes; Slurm creates its channels"),
        ({"imex": "WAITING_FOR_PEERS"}, "IMEX", False, "nvidia-imex on this host is WAITING_FOR_PEERS"),
        ({"mpi": "none pmi2"}, "MPI", False, "srun supports none, pmi2, not pmix"),
        ({"mpi": ""}, "MPI", None, "lists no types"),
        ({"partition.nvl": "up|30:00|36|gpu:gb300:4"}, "time limit", False, "60 minutes; nvl allows 30:00"),
        ({"nodes.nvl": "idle|36|gpu:4"}, "nodes", None, "Slurm does not know their type: compare it with gb300"),
        (
            {"nodes.nvl": "idle|36|gpu:nvidia_gb200:4"},
            "GPU type",
            False,
            "0 nodes with GB300 GPUs (36 have gpu:nvidia_gb200:4)",
        ),
        ({"nodes.nvl": "idle|36|gpu:b300:4"}, "GPU type", False, "0 nodes with GB300 GPUs"),
        ({"nodes.nvl": "idle|30|gpu:nvidia_gb300:4;drained|6|gpu:gb300:4"}, "nodes", False, "30 of 36 nodes of nvl"),
        ({"nodes.nvl": "idle|30|gpu:gb300:4;inval|6|gpu:gb300:4"}, "nodes", False, "30 of 36 nodes of nvl"),
        ({"nodes.nvl": "idle|30|gpu:gb300:4;future|6|gpu:gb300:4"}, "nodes", False, "30 of 36 nodes of nvl"),
        ({"nodes.nvl": "idle|30|gpu:gb300:4;idle*|6|gpu:gb300:4"}, "nodes", False, "30 of 36 nodes of nvl"),
        ({"nodes.nvl": "mixed|36|gpu:gb300:2"}, "nodes", False, "0 nodes with 4 GPUs or more"),
        ({"settings.nvl": "MaxNodes=16 MaxTime=1:00"}, "nodes", False, "nvl allows at most 16 nodes"),
        ({"settings.nvl": "MinNodes=40 MaxNodes=UNLIMITED"}, "nodes", False, "nvl requires at least 40 nodes"),
        ({"settings.nvl": "MaxMemPerNode=800"}, "memory", False, "requests all memory of its nodes; nvl allows 800 MB"),
        ({"nodes.nvl": ""}, "nodes", None, "sinfo lists no nodes"),
    ],
)
def test_a_job_that_would_not_start_or_cannot_be_checked_has_the_reason(
    facts: dict[str, str], name: str, ok: bool | None, detail: str
) -> None:
    check = checked(facts)[name]
    assert check.ok is ok
    assert detail in check.detail
    assert check.remedy or ok is None


@pytest.mark.parametrize(
    ("state", "reservation", "ok"),
    [("maint", "acceptance", True), ("maint", None, False), ("maint*", "acceptance", False)],
)
def test_a_reservation_with_the_flag_maint_starts_its_own_jobs(state: str, reservation: str | None, ok: bool) -> None:
    """Slurm 22.05 showed its nodes as maint. Its job ran, and sbatch --test-only let other jobs start at its end."""
    check = checked({"nodes.nvl": f"{state}|36|gpu:gb300:4"}, reservation=reservation)["nodes"]
    assert check.ok is ok


@pytest.mark.parametrize(
    ("nodes", "remedy"),
    [
        ("idle|36|(null)", "use fewer GPUs, or a partition with more such nodes"),
        ("idle|35|gpu:gb300:4;idle|8|gpu:gb300:2;idle|2|gpu:gb300:1", "set `gpus_per_node = 2` in [target]"),
    ],
)
def test_fewer_gpus_of_each_node_are_proposed_only_if_nodes_have_some(nodes: str, remedy: str) -> None:
    assert checked({"nodes.nvl": nodes})["nodes"].remedy.startswith(remedy)


def test_fewer_gpus_are_proposed_only_if_a_node_is_up() -> None:
    wait = "wait until more nodes are up (`sinfo -R` lists the reasons)"
    assert checked({"nodes.nvl": "down|36|gpu:gb300:4"})["nodes"].remedy == wait
    some = "idle|30|gpu:gb300:4;down|6|gpu:gb300:4"
    assert checked({"nodes.nvl": some})["nodes"].remedy == f"{wait}, or use fewer GPUs"


@pytest.mark.parametrize(
    ("known", "remedy"),
    [
        ("none pmi2 pmix_v5", ', or set `mpi = "pmix_v5"` in [target], or to pmi2'),
        ("none cray_shasta pmi2", ', or set `mpi = "pmi2"` in [target]'),
        ("none", "plugin for pmix"),
    ],
)
def test_another_mpi_type_is_proposed_of_the_same_family_first(known: str, remedy: str) -> None:
    assert checked({"mpi": known})["MPI"].remedy.endswith(remedy)


def test_a_partition_that_is_down_is_not_proposed_for_a_longer_time_limit() -> None:
    facts = {"partition.nvl": "up|30:00|36|gpu:gb300:4", "partition.down": "down|infinite|36|gpu:gb300:4"}
    facts |= {"partition.long": "up|infinite|36|gpu:gb300:4"}
    assert checked(facts)["time limit"].remedy.endswith(', or set `partition = "long"` in [target]')


@pytest.mark.parametrize(
    "facts",
    [
        {"block./b1": "BlockIndex=0 Nodes=nvl[001-018]", "block./b2": "BlockIndex=1 Nodes=nvl[019-036]"},  # 24.05
        {"config.TopologyPlugin": "topology/flat"},  # 25.05 with topology.yaml, which this key does not show
        {
            "config.TopologyPlugin": "topology/tree",
            "settings.nvl": "MaxNodes=UNLIMITED Topology=racks State=UP",
            "block./b1": "",
            "block./b2": "",
            "block.racks/b1": BLOCK_1,
            "block.racks/b2": BLOCK_2,
        },  # 25.05, a topology of the partition's own
    ],
)
def test_blocks_are_found_as_each_release_of_slurm_prints_them(facts: dict[str, str]) -> None:
    assert checked(facts)["NVLink domain"].ok


def test_a_job_may_start_in_any_of_several_partitions() -> None:
    facts = {"partition.old": "up|30:00|1|gpu:a100:8", "nodes.old": "idle|1|gpu:a100:8"}
    assert all(each.ok for each in checked(facts, partition="old,nvl").values())


@pytest.mark.parametrize(
    ("facts", "name", "detail", "remedy"),
    [
        (
            {"partition.old": "inact|30:00|36|gpu:gb300:4"},  # sbatch compares with all, also if they are closed
            "time limit",
            "60 minutes; old allows 30:00, nvl allows 4:00:00",
            'set `time_limit = "30m"` in [workload]',
        ),
        (
            {"partition.old": "up|infinite|36|gpu:gb300:4", "settings.old": "MaxNodes=16"},
            "nodes",
            "old allows at most 16 nodes for a job; the job needs 36",
            "use fewer GPUs",
        ),
    ],
)
def test_a_job_must_fit_every_partition_if_the_site_enforces_the_limits_of_all(
    facts: dict[str, str], name: str, detail: str, remedy: str
) -> None:
    facts = {**facts, "nodes.old": "idle|36|gpu:gb300:4"}
    assert checked(facts, partition="old,nvl")[name].ok
    check = checked({**facts, "config.EnforcePartLimits": "ALL"}, partition="old,nvl")[name]
    assert (check.ok, check.detail) == (False, detail)
    assert check.remedy.startswith(remedy)


def test_nodes_of_a_partition_that_is_down_do_not_count() -> None:
    facts = {"partition.nvl": "down|4:00:00|36|gpu:gb300:4", "partition.old": "up|4:00:00|1|gpu:gb300:4"}
    check = checked({**facts, "nodes.old": "idle|1|gpu:gb300:4"}, partition="nvl,old")["nodes"]
    assert (check.ok, check.detail) == (False, "old has 1 node with GB300 GPUs; the job needs 36")


def test_segments_are_checked_only_if_they_are_requested() -> None:
    assert "NVLink domain" not in checked({"config.TopologyPlugin": "topology/tree"}, segment=False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("infinite", None), ("30", 1800), ("2:00", 120), ("1:00:00", 3600), ("1-00:00:00", 86400), ("2-12", 216000)],
)
def test_a_time_limit_is_read_as_slurm_prints_it(text: str, seconds: int | None) -> None:
    assert parse_duration_s(text) == seconds


MIXED = {"nodes.nvl": "idle|36|gpu:gb300:4;mixed|2|gpu:h100:8;down|9|gpu:a100:8;idle|9|gpu:l4:1;idle|9|(null)"}


def test_nodes_with_other_gpus_on_which_slurm_may_start_the_job_are_named() -> None:
    check = checked(MIXED)["nodes"]
    assert check.ok is None
    assert check.detail == (
        "nvl has 36 nodes with GB300 GPUs; the job needs 36, but Slurm may start it on 2 nodes with gpu:h100:8"
    )
    assert check.remedy.startswith("select nodes with constraint or nodelist in [target]; `sinfo -p nvl ")
    assert checked(MIXED, constraint="gb300")["nodes"].ok


@pytest.mark.parametrize(
    ("sbatch", "selects"),
    [
        ({"nodefile": "/w/nodes"}, True),
        ({"gpus-per-task": "gb300:1"}, True),
        ({"gpus-per-task": 1}, False),
        ({"licenses": "scratch:2", "switches": 1}, False),
    ],
)
def test_only_options_of_sbatch_that_select_nodes_prevent_the_warning_about_other_gpus(
    sbatch: dict[str, str | int], selects: bool
) -> None:
    assert checked(MIXED, sbatch=sbatch)["nodes"].ok is (True if selects else None)


@pytest.mark.parametrize(
    ("mem", "ok"), [("800", True), ("800M", True), ("1g", False), ("801M", False), ("8K", True), ("none", True)]
)
def test_the_memory_of_a_job_is_compared_with_the_limit_of_the_partition(mem: str, ok: bool) -> None:
    checks = checked({"settings.nvl": "MaxMemPerNode=800 DefMemPerNode=100"}, mem=mem)
    assert ("memory" not in checks) == ok
    assert ok or checks["memory"].remedy == 'set `mem = "800M"` in [target]'
