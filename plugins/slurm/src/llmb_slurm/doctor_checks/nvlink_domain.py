"""Checks of an NVLink domain for ``llmb doctor``: Slurm's blocks of nodes, and the IMEX daemon."""

import re
from collections.abc import Mapping, Sequence

from llmb import DoctorCheck, Job
from llmb_slurm.doctor_checks.cluster_facts import partition_setting, setting_in
from llmb_slurm.doctor_checks.partition import best_check


def check_nvlink_domain(job: Job, size: int, facts: Mapping[str, str], names: Sequence[str]) -> DoctorCheck:
    """Check whether Slurm can place segments of ``size`` nodes into one NVLink domain each, in one partition."""
    return best_check([_domain_of_partition(job, size, facts, name) for name in names])


def _domain_of_partition(job: Job, size: int, facts: Mapping[str, str], partition: str) -> DoctorCheck:
    """Check the blocks of a partition.

    Blocks are listed even if TopologyPlugin is topology/flat, because a file topology.yaml takes precedence over it.
    """
    name, plugin = "NVLink domain", facts.get("config.TopologyPlugin")
    wanted = f"the job needs {job.nodes // size} x {size} nodes, each in one domain"
    key = f"block.{partition_setting(facts, partition, 'Topology')}/"
    blocks = [line for fact, line in facts.items() if fact.startswith(key)]
    if not blocks and (not plugin or "block" in plugin):
        return DoctorCheck(name=name, ok=None, detail=f"`scontrol show topology` lists no blocks; {wanted}")
    if not blocks:
        remedy = "set `segment = false` in [target], and nodelist to nodes of one domain"
        detail = f"Slurm has no blocks of nodes for {partition} (TopologyPlugin is {plugin}); {wanted}"
        return DoctorCheck(name=name, ok=False, detail=detail, remedy=remedy)
    nodes = [_count_nodes(setting_in(line, "Nodes")) for line in blocks]
    limits = {int(limit) for line in blocks if (limit := setting_in(line, "BlockSize")).isdigit()}
    detail = f"{len(blocks)} blocks of at most {max(nodes)} nodes; {wanted}"
    if limits and max(limits) < size:
        detail = f"segments of {size} nodes are larger than BlockSize {max(limits)} of topology.conf; {wanted}"
    elif sum(count // size for count in nodes) * size >= job.nodes:
        return DoctorCheck(name=name, ok=True, detail=detail)
    return DoctorCheck(
        name=name, ok=False, detail=detail, remedy="set `segment = false` in [target], or use fewer GPUs"
    )


def _count_nodes(hostlist: str) -> int:
    """Return the number of nodes in a list such as ``node[01-18,20],login``."""
    count = 0
    for name in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", hostlist):
        product = 1
        for group in re.findall(r"\[([^\]]*)\]", name):
            ranges = (each.partition("-") for each in group.split(","))
            product *= sum(int(last) - int(first) + 1 if dash else 1 for first, dash, last in ranges)
        count += product
    return count


def check_imex(facts: Mapping[str, str], partition: str) -> DoctorCheck:
    """Check the daemon by which GPUs of several nodes share memory over NVLink. It runs on compute nodes only."""
    state, switch = facts.get("imex"), facts.get("config.SwitchType", "")
    if state and state != "READY":
        remedy = "run `sudo systemctl start nvidia-imex` on the nodes; `nvidia-imex-ctl -N` shows what is missing"
        return DoctorCheck(name="IMEX", ok=False, detail=f"nvidia-imex on this host is {state}", remedy=remedy)
    if state:
        return DoctorCheck(name="IMEX", ok=True, detail="nvidia-imex on this host is READY")
    channels = "; Slurm creates its channels" if switch == "switch/nvidia_imex" else ""
    detail = f"cannot be checked here, because nvidia-imex runs only on compute nodes{channels}"
    remedy = f"`srun --partition={partition} nvidia-imex-ctl -q` prints READY if the daemon of a node is ready"
    return DoctorCheck(name="IMEX", ok=None, detail=detail, remedy=remedy)
