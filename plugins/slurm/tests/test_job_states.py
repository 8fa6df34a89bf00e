"""The status of recorded lines of squeue and sacct.

The lines were printed by Slurm 22.05 on a cluster, through ``query_queue`` and ``query_accounting``. Of the raw wait
statuses that squeue prints, 768 is exit code 3, 11 is signal 11, and 253 is Slurm's mark for out of memory.
"""

from __future__ import annotations

import pytest

from llmb import JobStatus
from llmb_slurm.job_states import job_status
from llmb_slurm.parse_squeue_sacct import parse_exit_code, parse_sacct_line, parse_squeue_line


def squeue(line: str) -> JobStatus:
    row = parse_squeue_line(line)
    assert row
    return job_status(row)


def sacct(line: str) -> JobStatus:
    row = parse_sacct_line(line)
    assert row
    return job_status(row)


@pytest.mark.parametrize(
    ("line", "cause", "exit_code"),
    [
        ("1|COMPLETED|0|0|0|a|p|None||/w|llmb a b|", "completed", 0),
        ("2|FAILED|0|768|0|a|p|NonZeroExitCode||/w|(null)|", "failed", 3),
        ("3|FAILED|0|11|0|a|p|JobLaunchFailure||/w|(null)|", "failed", 139),
        ("4|FAILED|0|4021|0|a|p|JobLaunchFailure||/w|(null)|", "launch failure", 15),
        ("5|FAILED|0|256|253|a|p|NonZeroExitCode||/w|(null)|", "out of memory", 1),
        ("6|COMPLETED|0|0|253|a|p|None||/w|(null)|", "completed", 0),
        ("7|OUT_OF_MEMORY|0|253|0|a|p|OutOfMemory||/w|(null)|", "out of memory", 253),
        ("11|FAILED|0|1|0|a|p|BadConstraints||/w|(null)|", "impossible", 129),
        ("13|CANCELLED|0|0|0|a|p|DependencyNeverSatisfied||/w|(null)|", "dependency", 0),
        ("16|DEADLINE|0|1|0|a|p|DeadLine||/w|(null)|", "deadline", 129),
        ("73|CANCELLED|0|15|0|a|p|None||/w|(null)|", "cancelled", 143),
        ("75|CANCELLED|0|0|0|a|p|Priority||/w|(null)|", "cancelled", 0),
        ("8|CANCELLED|0|0|0|a|p|PartitionNodeLimit||/w|(null)|", "impossible", 0),
        ("95|TIMEOUT|0|0|0|a|p|TimeLimit||/w|(null)|", "timeout", 0),
        ("98|PREEMPTED|0|0|0|a|p|None||/w|(null)|", "preempted", 0),
        ("103|NODE_FAIL|0|0|0|a|p|NodeDown||/w|(null)|", "node failure", 0),
    ],
)
def test_ends_in_squeue(line: str, cause: str, exit_code: int) -> None:
    status = squeue(line)
    assert (status.state, status.cause, status.exit_code) == ("ended", cause, exit_code)
    assert status.job_id == line.split("|")[0]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("76|COMPLETED|0:0|0:0|None|a|p|/", "completed"),
        ("77|FAILED|3:0|0:0|None|a|p|/", "failed"),
        ("78|FAILED|0:11|0:0|None|a|p|/", "failed"),
        ("4|FAILED|0:53|0:0|None|a|p|/", "launch failure"),
        ("1|OUT_OF_MEMORY|0:125|0:0|None|a|p|/", "out of memory"),
        ("3|FAILED|1:0|0:125|None|a|p|/", "out of memory"),
        ("2|COMPLETED|0:0|0:125|None|a|p|/", "completed"),
        ("73|CANCELLED by 1001|0:0|0:0|None|a|p|/", "cancelled"),
        ("72|CANCELLED|0:0|0:0|Dependency|a|p|/", "dependency"),
        ("88|CANCELLED by 0|0:0|0:0|PartitionNodeLimit|a|p|/", "impossible"),
        ("95|TIMEOUT|0:0|0:0|None|a|p|/", "timeout"),
        ("96|PREEMPTED|0:0|0:0|None|a|p|/", "preempted"),
        ("59|NODE_FAIL|0:0|0:0|None|a|p|/", "node failure"),
        ("16|DEADLINE|1:0|0:0|None|a|p|/", "deadline"),
        ("17|BOOT_FAIL|0:0|0:0|None|a|p|/", "launch failure"),
    ],
)
def test_ends_in_sacct(line: str, cause: str) -> None:
    status = sacct(line)
    assert (status.state, status.cause) == ("ended", cause)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("4|FAILED|0:53|0:0|None|a|p|/", "target.workdir"),
        ("17|BOOT_FAIL|0:0|0:0|None|a|p|/", "target.exclude"),
        ("88|CANCELLED by 0|0:0|0:0|PartitionNodeLimit|a|p|/", "target.partition"),
        ("88|CANCELLED by 0|0:0|0:0|PartitionTimeLimit|a|p|/", "workload.time_limit"),
        ("88|CANCELLED by 0|0:0|0:0|MaxMemPerLimit|a|p|/", "target.mem"),
        ("88|CANCELLED by 0|0:0|0:0|BadConstraints|a|p|/", "target.constraint"),
        ("88|CANCELLED by 0|0:0|0:0|AccountNotAllowed|a|p|/", "target.account"),
        ("88|CANCELLED by 0|0:0|0:0|Job's QOS not permitted to use this partition|a|p|/", "AllowQos"),
        ("88|CANCELLED by 0|0:0|0:0|User's group not permitted to use this partition|a|p|/", "AllowGroups"),
        ("88|CANCELLED by 0|0:0|0:0|InvalidQOS|a|p|/", "target.qos"),
        ("88|CANCELLED by 0|0:0|0:0|ReservationDeleted|a|p|/", "target.reservation"),
        ("88|CANCELLED by 0|0:0|0:0|QOSMaxWallDurationPerJobLimit|a|p|/", "workload.time_limit"),
        ("88|CANCELLED by 0|0:0|0:0|AssocMaxNodePerJobLimit|a|p|/", "lower target.max_jobs, the GPUs"),
        ("88|CANCELLED by 0|0:0|0:0|QOSMinGRES|a|p|/", "run on more GPUs"),
    ],
)
def test_an_avoidable_end_has_a_remedy(line: str, remedy: str) -> None:
    assert remedy in sacct(line).remedy


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Priority", ""),
        ("Resources", ""),
        ("BeginTime", ""),
        ("Dependency", ""),
        ("JobHeldUser", ""),
        ("JobHeldAdmin", ""),
        ("PartitionDown", ""),
        ("QOSMaxJobsPerUserLimit", ""),
        ("AssocGrpCpuLimit", ""),
        ("ReqNodeNotAvail, UnavailableNodes:node4", ""),
        ("ReqNodeNotAvail, Reserved for maintenance", ""),
        ("ReqNodeNotAvail, May be reserved for other job", ""),
        ("PartitionNodeLimit", "impossible"),
        ("PartitionTimeLimit", "impossible"),
        ("PartitionConfig", ""),
        ("MaxMemPerLimit", "impossible"),
        ("BadConstraints", "impossible"),
        ("QOSMaxNodePerJobLimit", "impossible"),
        ("AssocMaxWallDurationPerJobLimit", "impossible"),
        ("InvalidQOS", "impossible"),
        ("Job's account not permitted to use this partition (p allows proj2 not proj1)", "impossible"),
        ("Job's QOS not permitted to use this partition (p allows high not normal)", ""),
        ("Job's QOS not known, so it can't use this partition (p allows high)", ""),
        ("User's group not permitted to use this partition (p allows wheel)", "impossible"),
        ("uid 7 not in group permitted to use this partition (p). groups allowed: wheel", "impossible"),
        ("DependencyNeverSatisfied", "dependency"),
        ("launch failed requeued held", "launch failure"),
    ],
)
def test_a_pending_job_has_a_reason_and_may_be_unsatisfiable(reason: str, cause: str) -> None:
    status = squeue(f"8|PENDING|0|0|0|a|p|{reason}||/w|(null)|")
    assert (status.state, status.reason, status.cause, status.unsatisfiable) == ("pending", reason, cause, bool(cause))


def test_a_job_whose_qos_the_partition_forbids_waits_with_a_remedy_because_it_may_have_others() -> None:
    status = squeue("8|PENDING|0|0|0|a|p|Job's QOS not permitted to use this partition (p allows high)||/w|(null)|")
    assert (status.unsatisfiable, "AllowQos" in status.remedy) == (False, True)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("PartitionTimeLimit", ""),
        ("PartitionNodeLimit", ""),
        ("QOSMinGRES", ""),
        ("Job's account not permitted to use this partition (urgent allows proj2 not proj1)", ""),
        ("InvalidQOS", "impossible"),
        ("AssocMaxWallDurationPerJobLimit", "impossible"),
    ],
)
def test_a_job_in_several_partitions_may_start_in_another_than_that_of_the_reason(reason: str, cause: str) -> None:
    """Slurm 22.05 printed PartitionTimeLimit, then Resources, for a job that started in the other partition."""
    assert squeue(f"2|PENDING|0|0|0|a|batch,short|{reason}||/w|(null)|").cause == cause
    assert sacct(f"2|CANCELLED by 0|0:0|0:0|{reason}|a|batch,short|/").cause == (cause or "cancelled")


@pytest.mark.parametrize(
    ("state", "reason", "remedy"),
    [
        ("PENDING", "JobHeldUser", "release the job with `scontrol release 8`"),
        ("PENDING", "JobHeldAdmin", "only the site can run `scontrol release 8`"),
        ("REQUEUE_HOLD", "JobHeldUser", "release the job with `scontrol release 8`"),
        ("SPECIAL_EXIT", "None", "release the job with `scontrol release 8`"),
        ("PENDING", "job requeued in held state", "release the job with `scontrol release 8`"),
        ("PENDING", "job_requeued_in_held_state", "release the job with `scontrol release 8`"),
        ("PENDING", "PartitionConfig", "`scontrol show partition` prints its limits"),
        ("PENDING", "Priority", ""),
    ],
)
def test_a_held_job_has_a_remedy(state: str, reason: str, remedy: str) -> None:
    status = squeue(f"8|{state}|0|0|0|a|p|{reason}||/w|(null)|")
    assert not status.unsatisfiable
    assert remedy in status.remedy
    assert bool(status.remedy) == bool(remedy)


@pytest.mark.parametrize("line", ["88|FAILED|1:0|0:0|JobHeldUser|a|p|/", "88|TIMEOUT|0:0|0:0|JobHeldAdmin|a|p|/"])
def test_a_job_that_ended_after_its_release_is_not_to_be_released(line: str) -> None:
    """Slurm keeps the last reason for which a job was pending."""
    assert sacct(line).remedy == ""


def test_a_state_of_a_later_version_counts_as_running() -> None:
    assert squeue("73|A_STATE_OF_A_LATER_VERSION|2|0|0|a|p|None||/w|(null)|").state == "running"


@pytest.mark.parametrize(("attempt", "reason"), [(0, "BeginTime"), (1, "requeued (BeginTime)")])
def test_the_pause_before_a_new_attempt_is_named(attempt: int, reason: str) -> None:
    assert squeue(f"8|PENDING|{attempt}|0|0|a|p|BeginTime|1:00|/w|(null)|").reason == reason


def test_a_requeued_job_has_its_attempt() -> None:
    assert squeue("96|RUNNING|1|0|0|a|p|None||/w|llmb a b|").attempt == 1


@pytest.mark.parametrize("line", ["", "slurm_load_jobs error", "5|odd comment", "5|RUNNING|x|0|0|a|p|b|c|"])
def test_a_malformed_line_is_skipped(line: str) -> None:
    assert parse_squeue_line(line) is None


@pytest.mark.parametrize(
    ("text", "code"), [("768", (3, 0)), ("11", (0, 11)), ("3:0", (3, 0)), ("0:125", (0, 125)), ("", (0, 0))]
)
def test_exit_codes(text: str, code: tuple[int, int]) -> None:
    assert parse_exit_code(text) == code


@pytest.mark.parametrize(
    ("line", "left_s"),
    [
        ("1|RUNNING|0|0|0|a|p|None|59:58|/w|(null)|", 3598),
        ("1|RUNNING|0|0|0|a|p|None|1-02:00:03|/w|(null)|", 93603),
        ("1|RUNNING|0|0|0|a|p|None|UNLIMITED|/w|(null)|", None),
        ("1|RUNNING|0|0|0|a|p|None|INVALID|/w|(null)|", None),
        ("1|COMPLETING|0|0|0|a|p|None|0:05|/w|(null)|", None),
        ("1|PENDING|1|0|0|a|p|BeginTime|1:00|/w|(null)|", None),
        ("1|RUNNING|0|0|0|a|p|None|59:58|/w|comment", 3598),  # its next line is another line of the comment
    ],
)
def test_a_running_job_has_the_time_until_its_limit(line: str, left_s: int | None) -> None:
    assert squeue(line).time_left_s == left_s


@pytest.mark.parametrize("state", ["SUSPENDED", "RUNNING"])
def test_a_suspended_job_is_known_as_such(state: str) -> None:
    status = squeue(f"1|{state}|0|0|0|a|p|None|59:58|/w|(null)|")
    assert (status.state, status.suspended) == ("running", state == "SUSPENDED")
