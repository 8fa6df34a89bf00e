"""What to do when sbatch refuses a job."""

from __future__ import annotations

GPU_REQUEST = "set target.gpu_request, which says how this site wants GPUs asked for"

REMEDIES = (
    ("GPUs not found", GPU_REQUEST),
    ("without GPU resources", f"{GPU_REQUEST}; for a recipe without GPUs, set target.partition to one that takes such"),
    ("generic resource", GPU_REQUEST),
    ("account", "set target.account and target.partition to a pair that you may use"),
    ("partition", "set target.partition to one of those that `sinfo` lists"),
    ("qos", "set target.qos to one that you may use"),
    ("reservation", "set target.reservation to one that `scontrol show reservation` lists"),
    ("feature", "set target.constraint to features that `sinfo -o %f` lists"),
    ("node name", "see target.nodelist and target.exclude"),
    ("node count", "run on fewer GPUs, or set target.partition to one with more nodes"),
    ("time limit", "lower workload.time_limit, or set target.partition to one that allows it"),
    ("dependency", "see target.dependency"),
    ("memory", "lower target.mem"),
    ("unrecognized option", "see [target.sbatch]; this version of Slurm does not have it"),
    ("requested node configuration", "see target.gpu_request, mem and constraint: no node has what they ask for"),
)
"""A text of sbatch, in whatever case, and the remedy; the first that is found counts."""


def remedy(told: str) -> str:
    """What to do; nothing where the text is not known."""
    lower = told.lower()
    return next((what for text, what in REMEDIES if text.lower() in lower), "")
