"""Failures of clusters, containers and libraries: each text follows a public log, in our own words.

The first value after the text is the cause, then the rank and the host.
"""

from __future__ import annotations

from parts.recent_failures import FRAMES

CANCELLED = "slurmstepd: error: *** JOB 17 ON n3 CANCELLED AT 2026-03-24T17:04:13"
CHDIR = "slurmstepd: error: couldn't chdir to `/workspace': No such file or directory: going to /tmp instead\n"
NO_STEP = "srun: error: Unable to create step for job 17: Job/step already completing or completed\n"
OF_UCX = "[1724685304.1] [n1:102320:f]        vfs_fuse.c:281  UCX  ERROR "

FAILED = {
    # elena-lyulina/Megatron-LM-Attention-Benchmark: Slurm starts a script in /tmp, too
    "missing folder before a cancellation": (CHDIR + f"{CANCELLED} ***\n", "the job was cancelled", None, "n3"),
    "missing folder before the time limit": (
        CHDIR + f"{CANCELLED} DUE TO TIME LIMIT ***\n", "the job reached its time limit", None, "n3",
    ),
    "missing folder before an exception": (
        CHDIR + FRAMES + "RuntimeError: bad shard\n", "a process failed with RuntimeError", None, None,
    ),
    "missing folder": (
        CHDIR + "srun: error: n3: task 0: Exited with exit code 2\n", "the job's directory does not exist on a node",
        0, "n3",
    ),
    "step of a cancelled job": (NO_STEP + f"{CANCELLED} ***\n", "the job was cancelled", None, "n3"),
    "step of a job that ended": (NO_STEP, "unknown: the job ended before a step could start", None, None),
    # eth-cscs/cscs-docs
    "srun in a container": (
        "srun: error: Couldn't load specified plugin name for switch/hpe_slingshot: Dlopen of plugin file failed\n"
        "srun: fatal: Can't find plugin for switch/hpe_slingshot\n",
        "srun could not load its plugin switch/hpe_slingshot", None, None,
    ),
    "program of srun": (
        "srun: fatal: Can not execute train.sh\n",
        "a program that the job starts cannot be executed (train.sh)", None, None,
    ),
    # shifang99/Megatron-LM_core_v0.7.0_trace
    "inotify before an exception": (
        f"{OF_UCX}inotify_add_watch(/tmp) failed: No space left on device\n{FRAMES}KeyError: 1\n",
        "a process failed with KeyError", None, None,
    ),
    "other user of all inotify instances": (
        f"{OF_UCX}inotify_init() failed: Too many open files\n{FRAMES}KeyError: 1\n", "a process failed with KeyError",
        None, None,
    ),
}  # fmt: skip

HARMLESS = [
    f"{OF_UCX}inotify_add_watch(/tmp) failed: No space left on device\n",
    f"{OF_UCX}inotify_init() failed: Too many open files\n",
]
"""Messages of healthy runs that resemble those of failures."""
