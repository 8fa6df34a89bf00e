"""Failures that launchers and schedulers other than Slurm report: each text follows a public log, in our own words.

The first value after the text is the cause, then the rank and the host.
"""

from __future__ import annotations

from parts.recent_failures import FRAMES, of_rank

FAILED = {
    # PBS, LSF and PALS, in public notes of their users
    "time limit of PBS": (
        "=>> PBS: job killed: walltime 3617 exceeded limit 3600\n", "the job reached its time limit", None, None,
    ),
    "exception before the time limit of PBS": (
        f"{FRAMES}KeyError: 1\n=>> PBS: job killed: walltime 3617 exceeded limit 3600\n",
        "a process failed with KeyError", None, None,
    ),
    "memory of PBS": (
        "=>> PBS: job killed: mem 132120576kb exceeded limit 131072000kb\n", "the host is out of memory", None, None,
    ),
    "time limit of LSF": (
        "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140.\n",
        "the job reached its time limit", None, None,
    ),
    "memory of LSF": (
        "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n", "the host is out of memory", None, None,
    ),
    "lost node of PALS": (
        "x4406c6s7b0n0.hostmgmt2406.cm.site.gov: shepherd died from signal 9\n", "unknown: the launcher lost a node",
        None, "x4406c6s7b0n0.hostmgmt2406.cm.site.gov",
    ),
    "killed process of PALS": (
        "x4406c6s7b0n0.cm.site.gov: shepherd died from signal 9\nRuntimeError: CUDA error: an illegal memory access "
        "was encountered\n", "the program accessed GPU memory that is not its own", None,
        "x4406c6s7b0n0.cm.site.gov",
    ),
    # pmodels/mpich 7569 and shankar1729/jdftx 336
    "rank of PALS": (
        "x4406c6s7b0n0.cm.site.gov: rank 4 died from signal 15\nx4406c6s1b0n0.cm.site.gov: rank 37 died from signal 9 "
        "and dumped core\nx4406c6s1b0n0.cm.site.gov: rank 36 died from signal 11\n",
        "unknown: a process ended with signal 9", 37, "x4406c6s1b0n0.cm.site.gov",
    ),
    "rank of PALS with a code": (
        "x4406c6s7b0n0.cm.gov: rank 4 exited with code 143\nx4406c6s1b0n0.cm.gov: rank 37 exited with code 1\n",
        "unknown: a process exited with code 1", 37, "x4406c6s1b0n0.cm.gov",
    ),
    "abort in MPICH": (
        "Abort(1) (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 3\n",
        "unknown: a process aborted with code 1", 3, None,
    ),
    "owner of a job of LSF": (
        "TERM_OWNER: job killed by owner.\nExited with exit code 143.\n", "the job was cancelled", None, None,
    ),
    "preempted job of LSF": (
        "TERM_PREEMPT: job killed after preemption.\nExited with exit code 130.\n",
        "the scheduler took the job's nodes for another one", None, None,
    ),
    # openpmix/prrte 2694, 1243, 1493 and 540
    "lost node of Open MPI 5": (
        "PRTE has lost communication with a remote daemon.\n\n  HNP daemon   : [prterun-n1-27@0,0] on node n1\n"
        "  Remote daemon: [prterun-n1-27@0,2] on node n3\n", "the launcher lost a node", None, "n3",
    ),
    "daemon of Open MPI 5 that did not start": (
        "ssh_exchange_identification: Connection closed by remote host\nprterun was unable to reliably start one or "
        "more daemons.\n", "the launcher could not reach a node", None, None,
    ),
    "daemon of Open MPI 5 that failed": (
        "An PRRTE daemon has unexpectedly failed after launch\n", "the launcher lost a node", None, None,
    ),
    "rank of Open MPI that exited": (
        "prterun has exited due to process rank 2 with PID 1705 on node n3 exiting\nimproperly.\n",
        "unknown: a process of the run failed", 2, "n3",
    ),
    # flux-framework/flux-core 7328, 7037, 6054 and 7310
    "task of Flux": (
        "0.4s: flux-shell[0]: FATAL: doom: python: task rank 3 on host tuo21 failed (Killed) and exit-on-error is set\n"
        "0.5s: job.exception type=exec severity=0 python: task rank 3 on host tuo21 failed (Killed) and exit-on-error "
        "is set\nflux-job: task(s) exited with exit code 137\n", "unknown: a process of the run failed", 3, "tuo21",
    ),
    "first task of Flux": (
        "flux-shell[0]: FATAL: doom: python: rank 3 on host tuo21 exited and exit-timeout=30s has expired\n",
        "unknown: a process of the run failed", 3, "tuo21",
    ),
    "error before the end of Flux": (
        of_rank(3, "torch.OutOfMemoryError: CUDA out of memory.\n")
        + "0.4s: flux-shell[0]: FATAL: doom: rank 3 failed and exit-on-error is set\nflux-job: task(s) Killed\n",
        "the accelerator is out of memory", 3, None,
    ),
    "exit code in Flux": (
        "flux-job: task(s) exited with exit code 139\n",
        "unknown: a process exited with code 139 (segmentation fault)", None, None,
    ),
    "lost node of Flux": (
        "91.2s: job.exception type=node-failure severity=2 node failure on tuo21 (shell rank 7)\nflux-job: task(s) "
        "exited with exit code 1\n", "unknown: the launcher lost a node", None, "tuo21",
    ),
    "start of Flux": (
        "5.7s: job.exception type=exec severity=0 job shell exec error on broker tuo21 (rank 25): error 255\n",
        "a node did not start its ranks", None, "tuo21",
    ),
    "time limit of Flux": (
        "3600.1s: job.exception type=timeout severity=0 resource allocation expired\nflux-job: task(s) Terminated\n",
        "the job reached its time limit", None, None,
    ),
    "cancelled job of Flux": (
        "36.1s: job.exception type=cancel severity=0 interrupted by ctrl-C\n", "the job was cancelled", None, None,
    ),
}  # fmt: skip

HARMLESS = [
    "x4406c6s7b0n0.cm.site.gov: rank 4 died from signal 15\n",
    "LLVM ERROR: pthread_join failed: Invalid argument\n",
]
"""Messages of healthy runs, or of ranks that a launcher ended, that resemble those of failures."""
