"""Remedies for jobs that sbatch rejects."""

from __future__ import annotations

GPU_REQUEST = (
    "request GPUs as this site does, which `sinfo -o '%P %G'` shows: "
    "`llmb run SPEC --set target.gpu_request=gpus-per-node`, or gres, or none"
)
MINE = "that you may use; `sacctmgr show assoc user=$USER format=account,partition,qos` lists them"

REMEDIES = (
    ("GPUs not found", GPU_REQUEST),
    (
        "without GPU resources",
        f"{GPU_REQUEST}; for a recipe without GPUs, name a partition for such jobs: "
        "`llmb run SPEC --set target.partition=NAME`",
    ),
    ("generic resource", GPU_REQUEST),
    (
        "violates accounting/qos policy",
        "lower target.max_jobs, the GPUs or workload.time_limit, or use a QOS with higher limits: "
        "`llmb run SPEC --set target.qos=NAME`; "
        "`sacctmgr show qos format=name,maxjobspu,maxsubmitpu,maxtrespu,maxwall` lists them",
    ),
    ("account", f"`llmb run SPEC --set target.account=NAME --set target.partition=NAME` with a pair {MINE}"),
    ("partition", "`llmb run SPEC --set target.partition=NAME` with a partition that `sinfo` lists"),
    ("qos", f"`llmb run SPEC --set target.qos=NAME` with one {MINE}"),
    ("reservation", "`llmb run SPEC --set target.reservation=NAME` with one that `scontrol show reservation` lists"),
    ("feature", "`llmb run SPEC --set target.constraint=NAME` with features that `sinfo -o %f` lists"),
    ("node name", "correct target.nodelist and target.exclude; `sinfo -N` lists the nodes"),
    (
        "node count",
        "use fewer GPUs, or `llmb run SPEC --set target.partition=NAME` with a partition with more nodes; "
        "`sinfo -o '%P %D'` lists both",
    ),
    (
        "time limit",
        "`llmb run SPEC --set workload.time_limit=30m`, or with a partition that allows more: "
        "`llmb run SPEC --set target.partition=NAME`; "
        "`sinfo -o '%P %l'` lists both",
    ),
    ("dependency", "correct target.dependency; `squeue --me` lists your jobs"),
    ("memory", "lower target.mem: `llmb run SPEC --set target.mem=64G`; `sinfo -o '%P %m'` lists the memory in MB"),
    ("unrecognized option", "correct [target.sbatch]; `sbatch --help` lists the options of this version of Slurm"),
    (
        "requested node configuration",
        "correct target.gpu_request, mem and constraint; `sinfo -o '%P %G %m %f'` lists what the nodes have",
    ),
)
"""A part of sbatch's message, in any case, and the remedy. The first match wins."""


def remedy(message: str) -> str:
    """Return the remedy for a message of sbatch, or "" if the message is unknown."""
    lower = message.lower()
    return next((remedy for text, remedy in REMEDIES if text.lower() in lower), "")
