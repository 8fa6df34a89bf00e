"""Reasons for which a job stays pending forever or is held, and remedies for these and for jobs that sbatch rejects."""

import re

UNSATISFIABLE = re.compile(r"Invalid(Account|QOS)|ReservationDeleted|AssocMax\w*PerJob\w*", re.IGNORECASE)
"""Reasons for which a job stays pending forever unless its options change."""

UNSATISFIABLE_IN_PARTITION = re.compile(
    r"Partition(Node|Time)Limit|MaxMemPerLimit|BadConstraints|(Account|QOS)NotAllowed|Job's account not permitted"
    r"|User's group not permitted|uid \d+ not in group permitted"
    r"|QOSMax\w*PerJob\w*|QOSMin\w*",
    re.IGNORECASE,
)
"""The same for one partition. A job in several partitions has the reason of the one that Slurm examined last."""

FORBIDDEN_QOS = re.compile(r"Job's QOS not (permitted|known)", re.IGNORECASE)
"""The same for one QOS. The queue does not show whether the job has others, so llmb prints a remedy and waits."""

GPU_REQUEST = (
    "request GPUs as this site does, which `sinfo -o '%P %G'` shows: "
    "`llmb run SPEC --set target.gpu_request=gpus-per-node`, or gres, or none"
)
MINE = "that you may use; `sacctmgr show assoc user=$USER format=account,partition,qos` lists them"

REMEDIES = (
    (("gpus not found",), GPU_REQUEST),
    (
        ("without gpu resources",),
        f"{GPU_REQUEST}; for a recipe without GPUs, name a partition for such jobs: "
        "`llmb run SPEC --set target.partition=NAME`",
    ),
    (("generic resource",), GPU_REQUEST),
    (
        ("qosmin",),
        "run on more GPUs, or use a QOS with a lower minimum: `llmb run SPEC --set target.qos=NAME`; "
        "`sacctmgr show qos format=name,mintres` lists them",
    ),
    (
        ("violates accounting/qos policy", "qosmax", "assocmax"),
        "lower target.max_jobs, the GPUs or workload.time_limit, or use a QOS with higher limits: "
        "`llmb run SPEC --set target.qos=NAME`; "
        "`sacctmgr show qos format=name,maxjobspu,maxsubmitpu,maxtrespu,maxwall` lists them",
    ),
    (
        ("temporarily unable to accept", "temporarily unavailable"),
        "the controller takes no more jobs now: `scontrol show config | grep MaxJobCount` and `squeue | wc -l` show "
        "limit and jobs; start the missing runs later, or fewer together: `llmb run SPEC --set target.max_jobs=100`",
    ),
    (
        ("partitionnodelimit", "node count"),
        "run on GPUs of as many nodes as the partition allows, or `llmb run SPEC --set target.partition=NAME` with "
        "another partition; `scontrol show partition | grep -e Name -e Nodes` prints MinNodes, MaxNodes and TotalNodes",
    ),
    (
        ("partitiontimelimit", "time limit"),
        "`llmb run SPEC --set workload.time_limit=LIMIT`, or with a partition that allows more: "
        "`llmb run SPEC --set target.partition=NAME`; `sinfo -o '%P %l'` lists both",
    ),
    (
        ("badconstraints",),
        "correct target.constraint, nodelist, exclude and mem: no node of the partition satisfies them; "
        "`sinfo -o '%P %N %m %f'` lists what the nodes have",
    ),
    (
        ("group not permitted", "not in group permitted"),
        "`llmb run SPEC --set target.partition=NAME` with a partition that admits your groups; `id -Gn` lists these, "
        "and `scontrol show partition` prints AllowGroups",
    ),
    (
        ("not permitted to use this partition",),
        "`llmb run SPEC --set target.partition=NAME` with another partition, or set account or qos to one it allows; "
        "`scontrol show partition` prints AllowAccounts and AllowQos",
    ),
    (("account",), f"`llmb run SPEC --set target.account=NAME --set target.partition=NAME` with a pair {MINE}"),
    (("partition",), "`llmb run SPEC --set target.partition=NAME` with a partition that `sinfo` lists"),
    (("qos",), f"`llmb run SPEC --set target.qos=NAME` with one {MINE}"),
    (("reservation",), "`llmb run SPEC --set target.reservation=NAME` with one that `scontrol show reservation` lists"),
    (("feature",), "`llmb run SPEC --set target.constraint=NAME` with features that `sinfo -o %f` lists"),
    (("license",), "correct licenses in [target.sbatch]; `scontrol show licenses` lists those of the cluster"),
    (("node name",), "correct target.nodelist and target.exclude; `sinfo -N` lists the nodes"),
    (("dependency",), "correct target.dependency; `squeue --me` lists your jobs"),
    (
        ("memory", "--mem", "maxmem"),
        "set target.mem to what the nodes have: `llmb run SPEC --set target.mem=SIZE`; `sinfo -o '%P %m'` lists the "
        "memory in MB, and `scontrol show partition` the limit MaxMemPerNode; "
        "if the site rejects --mem: `llmb run SPEC --set target.mem=none`",
    ),
    (
        ("option '--segment",),
        "set target.segment = false, because Slurm is older than 24.05: `llmb run SPEC --set target.segment=false`",
    ),
    (("unrecognized option",), "correct [target.sbatch]; `sbatch --help` lists the options of this version of Slurm"),
    (
        ("requested node configuration",),
        "correct target.gpu_request, mem, constraint, nodelist and exclude, or use fewer GPUs: the partition may have "
        "too few nodes, or some may be down; `sinfo -o '%P %N %T %G %m %f'` lists their states and what they have",
    ),
)
"""Parts of sbatch's messages and of squeue's reasons, in lower case, and the remedy. The first match wins."""


RELEASE = "release the job with `scontrol release {}` on the host of the target"
HELD = {
    "JobHeldUser": RELEASE,
    "JobHeldAdmin": "an administrator holds the job; only the site can run `scontrol release {}`",
    "JobHoldMaxRequeue": "the job was requeued too often; only the site can run `scontrol release {}`",
    "REQUEUE_HOLD": RELEASE,
    "SPECIAL_EXIT": RELEASE,
    "RESV_DEL_HOLD": RELEASE,
    "PartitionConfig": "the partition does not allow the job as it is now; `scontrol show partition` prints its limits",
}
"""Reasons and states of jobs that do not start before a user or the site acts, and the remedy."""

HELD_WORD = re.compile(r"(?<![a-z])held(?![a-z])", re.IGNORECASE)
"""A word of reasons such as "job requeued in held state", also with underscores. Versions of Slurm differ in them."""


def find_remedy(message: str) -> str:
    """Return the remedy for a message of sbatch or a reason of squeue, or "" if it is unknown."""
    lower = message.lower()
    return next((remedy for parts, remedy in REMEDIES if any(part in lower for part in parts)), "")


def held_job_remedy(job_id: str, state: str, reason: str) -> str:
    """Return the remedy for a job that starts only if a user or the site acts, else ""."""
    remedy = HELD.get(reason) or HELD.get(state) or (RELEASE if HELD_WORD.search(reason) else "")
    return remedy.format(job_id)
