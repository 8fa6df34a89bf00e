"""Remedies for jobs that sbatch rejects."""

from __future__ import annotations

GPU_REQUEST = "set target.gpu_request to the way in which this site requests GPUs; `sinfo -o '%P %G'` lists them"

MINE = "`sacctmgr show assoc user=$USER format=account,partition,qos` lists them"

REMEDIES = (
    ("GPUs not found", GPU_REQUEST),
    ("without GPU resources", f"{GPU_REQUEST}; for a recipe without GPUs, set target.partition to one for such jobs"),
    ("generic resource", GPU_REQUEST),
    (
        "violates accounting/qos policy",
        "lower target.max_jobs, the GPUs or workload.time_limit, or set target.qos to one with higher limits; "
        "`sacctmgr show qos format=name,maxjobspu,maxsubmitpu,maxtrespu,maxwall` lists them",
    ),
    ("account", f"set target.account and target.partition to a pair that you may use; {MINE}"),
    ("partition", "set target.partition to a partition that `sinfo` lists"),
    ("qos", f"set target.qos to one that you may use; {MINE}"),
    ("reservation", "set target.reservation to one that `scontrol show reservation` lists"),
    ("feature", "set target.constraint to features that `sinfo -o %f` lists"),
    ("node name", "check target.nodelist and target.exclude; `sinfo -N` lists the nodes"),
    ("node count", "run on fewer GPUs, or set target.partition to one with more nodes; `sinfo -o '%P %D'` lists both"),
    (
        "time limit",
        "lower workload.time_limit, or set target.partition to one that allows it; `sinfo -o '%P %l'` lists both",
    ),
    ("dependency", "check target.dependency"),
    ("memory", "lower target.mem; `sinfo -o '%P %m'` lists the memory of the nodes in MB"),
    ("unrecognized option", "check [target.sbatch]: this version of Slurm does not support the option"),
    ("requested node configuration", "check target.gpu_request, mem and constraint: no node satisfies them"),
)
"""A part of sbatch's message, in any case, and the remedy. The first match wins."""


def remedy(message: str) -> str:
    """Return the remedy for a message of sbatch, or "" if the message is unknown."""
    lower = message.lower()
    return next((remedy for text, remedy in REMEDIES if text.lower() in lower), "")
