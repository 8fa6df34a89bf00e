"""The probe of llmb doctor, with commands that print what releases of Slurm print that this machine lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from llmb import FrozenMap, Target
from llmb_slurm.options import SlurmOptions
from llmb_slurm.plugin import Slurm

SINFO = """case "$1" in
--version) echo slurm 25.05.3 ;;
*) printf '%s\\n' 'nvl*|up|36|4:00:00|gpu:gb300:4(S:0-1)|idle' 'cpu|up|2|infinite|(null)|mixed' ;;
esac
[ "$1" != -a ] || echo 'secret|up|1|infinite|gpu:gb300:4|idle'"""
# the formats of src/api/partition_info.c, src/api/config_info.c and src/plugins/topology/block/topology_block.c of
# https://github.com/SchedMD/slurm/tree/slurm-25-05-3-1; topology.yaml leaves TopologyPlugin as it is
SCONTROL = """case "$*" in
"-a -o show partition")
  echo 'PartitionName=nvl AllowGroups=ALL MaxNodes=UNLIMITED PreemptMode=OFF Topology=racks State=UP TotalNodes=36'
  echo 'PartitionName=cpu AllowGroups=ALL MaxNodes=UNLIMITED PreemptMode=OFF State=UP TotalNodes=2' ;;
"show config")
  echo 'ClusterName             = nvl'
  printf '%s\\n' 'SwitchType              = switch/nvidia_imex' 'TopologyPlugin          = topology/flat'
  echo 'EnforcePartLimits       = ALL' ;;
"show topology") echo 'SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=nvl[001-036],cpu[1-2]' ;;
"show topology racks")
  echo 'BlockName=rack1 BlockIndex=0 Nodes=nvl[001-018] BlockSize=18'
  echo 'BlockName=rack2 BlockIndex=1 Nodes=nvl[019-036] BlockSize=18'
  echo 'AggregatedBlock=rack[1-2] BlockIndex=2 Nodes=nvl[001-036] BlockSize=36' ;;
esac"""
# https://slurm.schedmd.com/mpi_guide.html
SRUN = """case "$*" in
--mpi=list)
  printf '%s\\n' 'MPI plugin types are...' '\tnone' '\tpmi2' '\tpmix'
  echo 'specific pmix plugin versions available: pmix_v4,pmix_v5' ;;
esac"""
SACCTMGR = """case " $* " in
*" cluster=nvl "*) printf '%s\\n' physics physics chemistry ;;
*) printf '%s\\n' physics chemistry account_of_another_cluster ;;
esac"""
COMMANDS = {
    "sinfo": SINFO,
    "sacctmgr": SACCTMGR,
    "scontrol": SCONTROL,
    "srun": SRUN,
    "sbatch": "",
    "nvidia-imex-ctl": "echo READY",
}
TOOLS = ("bash", "cat", "date", "grep", "id", "paste", "sed", "sort", "tail", "timeout", "tr")


@pytest.fixture
def facts(tmp_path: Path) -> dict[str, str]:
    """Return what the probe finds with the commands above."""
    return run_probe(tmp_path, COMMANDS)


def run_probe(folder: Path, commands: Mapping[str, str]) -> dict[str, str]:
    """Return what the probe finds on a machine with these commands."""
    for name, text in commands.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    for name in TOOLS:
        (folder / name).symlink_to(shutil.which(name) or name)
    target = Target(scheduler="slurm", workdir="/w", options=SlurmOptions(), facts=FrozenMap())
    done = subprocess.run(
        ["bash", "-c", Slurm().probe(target)],
        env=os.environ | {"PATH": str(folder)},
        check=True,
        capture_output=True,
        text=True,
    )
    pairs = (line.split("=", 1) for line in done.stdout.splitlines())
    return {key: value.strip() for key, value in pairs}


def test_nodes_and_time_limits_of_partitions_are_found(facts: dict[str, str]) -> None:
    assert (facts["slurm"], facts["default_partition"]) == ("slurm 25.05.3", "nvl")
    assert facts["partition.nvl"] == "up|4:00:00|36|gpu:gb300:4(S:0-1)"
    assert facts["nodes.nvl"] == "idle|36|gpu:gb300:4(S:0-1)"


def test_a_host_without_sbatch_has_no_commands_of_slurm(tmp_path: Path) -> None:
    assert "slurm" not in run_probe(tmp_path, {name: text for name, text in COMMANDS.items() if name != "sbatch"})


def test_hidden_partitions_are_found_because_jobs_may_use_them(facts: dict[str, str]) -> None:
    assert facts["partition.secret"] == "up|infinite|1|gpu:gb300:4"


def test_the_blocks_of_a_partition_with_a_topology_of_its_own_are_found(facts: dict[str, str]) -> None:
    assert facts["config.TopologyPlugin"] == "topology/flat"
    assert {key: value for key, value in facts.items() if key.startswith("block.")} == {
        "block.racks/rack1": "BlockIndex=0 Nodes=nvl[001-018] BlockSize=18",
        "block.racks/rack2": "BlockIndex=1 Nodes=nvl[019-036] BlockSize=18",
    }


def test_account_and_partition_of_the_login_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other queries do not see these variables."""
    monkeypatch.setenv("SLURM_ACCOUNT", "physics")
    monkeypatch.setenv("SBATCH_PARTITION", "cpu")
    facts = run_probe(tmp_path, COMMANDS)
    assert (facts["login_account"], facts["login_partition"]) == ("physics", "cpu")


def test_accounts_of_another_cluster_in_the_same_database_are_left_out(facts: dict[str, str]) -> None:
    assert facts["accounts"] == "chemistry,physics"


def test_switch_imex_limits_and_mpi_types_are_found(facts: dict[str, str]) -> None:
    assert (facts["config.SwitchType"], facts["imex"]) == ("switch/nvidia_imex", "READY")
    assert facts["config.EnforcePartLimits"] == "ALL"
    assert facts["mpi"].split() == ["none", "pmi2", "pmix", "pmix_v4", "pmix_v5"]


def test_the_clock_is_read_after_the_queries_which_may_be_slow(facts: dict[str, str]) -> None:
    assert list(facts)[-1] == "clock"
