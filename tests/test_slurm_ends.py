"""Every end of a job on a real Slurm cluster, and the state and reason of its run."""

from __future__ import annotations

import getpass
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S, wait_until
from parts.pages import blocks, commands, matches
from parts.toy import at_gate, gated

pytestmark = pytest.mark.real


def its_time_is_over(toy: Any) -> Any:
    """Set the time limit of the job to a moment ahead; Slurm rejects a limit in the past."""
    return order(toy, "scontrol", "update", "jobid=JOB", "EndTime=now+5")


def open_gate(toy: Any, attempt: int) -> tuple[Any, Any]:
    """Open the gate of this attempt."""
    return at_gate(toy, toy.gate.touch, attempt)


def at_recorded_gate(toy: Any, action: Any) -> tuple[Any, Any]:
    """Call ``action`` once the first attempt waits at the gate, and accounting contains its start.

    Accounting would never contain an attempt that ends before Slurm has sent its start there.
    """
    sacct = ("sacct", "-X", "-n", "-P", "-o", "State")
    return lambda: toy.is_at_gate() and toy.cluster.order(*sacct, "-j", toy.job_id()).strip() == "RUNNING", action


def order(toy: Any, *words: str) -> Any:
    """Run a Slurm command, with the id of the run's job instead of JOB."""
    return lambda: toy.cluster.order(*(word.replace("JOB", toy.job_id()) for word in words))


@pytest.mark.smoke
def test_a_failed_rank_is_the_reason(toy_slurm: Any) -> None:
    run = toy_slurm.follow(framework={"end": "exit 3", "end_step": 2})
    assert run["state"] == "failed"
    [node] = run["attempts"][0]["nodes"]
    assert run["reason"] == f"phase train, rank 0 on {node}: exit code 3 (after 2 of 5 steps)"
    assert "toy: giving up" in run["failure"]["evidence"]


def test_a_crash_after_the_last_step_is_a_note(toy_slurm: Any) -> None:
    run = toy_slurm.follow(framework={"end": "exit 3"})
    assert (run["state"], run["failure"]) == ("completed", None)
    [node] = run["attempts"][0]["nodes"]
    assert run["notes"] == [f"after the last of 5 steps, the job failed: phase train, rank 0 on {node}: exit code 3"]
    assert run["metrics"]["step_time_s"] == 0.5


def test_cancelled_with_scancel(toy_slurm: Any) -> None:
    run = toy_slurm.follow(at_gate(toy_slurm, order(toy_slurm, "scancel", "JOB")), framework=gated(toy_slurm))
    user = getpass.getuser()
    assert (run["state"], run["reason"]) == ("cancelled", f"cancelled by {user} after 2 of 5 steps")
    [attempt] = run["attempts"]
    assert attempt["cause"] == f"cancelled by {user}"
    assert attempt["nodes"] in (["node1"], ["node2"])
    assert attempt["start"] <= attempt["end"]


def test_a_directory_that_disappears_is_the_reason(toy_slurm: Any) -> None:
    def remove() -> None:
        shutil.rmtree(toy_slurm.workdir)
        toy_slurm.gate.touch()

    run = toy_slurm.follow(at_gate(toy_slurm, remove), framework=gated(toy_slurm))
    assert run["state"] == "failed"
    assert run["reason"] == f"its directory {toy_slurm.work(run['run_id'])} disappeared"
    assert run["failure"]["cause"] == run["reason"]


def test_files_that_are_deleted_during_a_run_are_the_reason(toy_slurm: Any) -> None:
    """The directory itself stays, as after `find -type f -delete`."""

    def remove() -> None:
        for file in [each for each in toy_slurm.workdir.rglob("*") if each.is_file()]:
            file.unlink()
        toy_slurm.gate.touch()

    run = toy_slurm.follow(at_gate(toy_slurm, remove), framework=gated(toy_slurm))
    assert run["state"] == "failed"
    directory = toy_slurm.work(run["run_id"])
    assert run["reason"].startswith(f"files of its directory {directory} were deleted during the run, such as ")
    assert run["failure"]["cause"] == run["reason"]


@pytest.mark.slow
def test_a_time_limit_before_the_last_step(toy_slurm: Any) -> None:
    end_now = its_time_is_over(toy_slurm)
    run = toy_slurm.follow(at_gate(toy_slurm, end_now), framework=gated(toy_slurm))
    assert (run["state"], run["reason"]) == ("timeout", "hit the time limit after 2 of 5 steps")


@pytest.mark.slow
def test_a_time_limit_after_the_last_step(toy_slurm: Any) -> None:
    end_now = its_time_is_over(toy_slurm)
    run = toy_slurm.follow(at_gate(toy_slurm, end_now), framework={"hang": True})
    assert run["state"] == "completed"
    assert run["notes"] == ["after the last of 5 steps, the job hung until its time limit"]
    assert run["metrics"]["step_time_s"] == 0.5


def test_a_nan_loss_is_a_failure(toy_slurm: Any) -> None:
    run = toy_slurm.follow(framework={"nan_step": 3})
    assert (run["state"], run["reason"]) == ("failed", "the loss was NaN (5 of 5 steps done)")


def causes(run: dict[str, Any]) -> list[str]:
    """Return why the attempts of a run ended, after checking that each has its nodes and its time."""
    times = [time for attempt in run["attempts"] for time in (attempt["start"], attempt["end"])]
    assert times == sorted(times)
    assert all(attempt["nodes"] for attempt in run["attempts"])
    assert [attempt["attempt"] for attempt in run["attempts"]] == list(range(len(run["attempts"])))
    return [attempt["cause"] for attempt in run["attempts"]]


def preempt(toy: Any) -> Any:
    """Submit an urgent job that briefly needs all nodes exclusively."""
    words = ["-p", "urgent", "-N", "4", "--exclusive", "-o", "/dev/null", "--wrap", "true"]
    return order(toy, "sbatch", *words)


@pytest.mark.slow
def test_the_new_attempt_of_a_preempted_job_is_followed(toy_slurm: Any) -> None:
    run = toy_slurm.follow(
        at_recorded_gate(toy_slurm, preempt(toy_slurm)),
        open_gate(toy_slurm, attempt=1),
        framework=gated(toy_slurm),
        target={"partition": "scavenger"},
        workload={"steps": 10},
        measure={"window": "last"},
    )
    assert run["state"] == "completed"
    [record] = toy_slurm.records
    logs = {file.name for file in (record / "logs").iterdir()}
    assert {"train.0.log", "train.1.log", "slurm.log"} <= logs
    assert (record / "logs/train.0.log").read_text().count("toy step") < 5
    assert toy_slurm.steps_of(record) == list(range(1, 11))
    assert toy_slurm.jobs()[run["run_id"]] == [run["job_id"]]
    assert causes(run) == ["preempted", "completed"]
    user = getpass.getuser()
    [urgent] = toy_slurm.cluster.order("squeue", "-h", "-t", "all", "-p", "urgent", "-o", "%i", "--sort=-i").split()[:1]
    follower = f"job {urgent} of {user} (urgent) on node1"
    assert [attempt["followed_by"] for attempt in run["attempts"]] == [follower, ""]
    shown = toy_slurm.llmb("show", run["run_id"]).stdout
    [block] = (each for each in blocks("docs/slurm.md") if "  attempt 0 " in each.text)
    [(_, expected)] = commands(block)
    page = expected.replace("/home/me/.local/share/llmb/runs/cjp7u", "...").replace(
        "cjp7u", run["run_id"].partition("-")[0]
    )
    page = page.replace("alice", user)
    texts = [re.sub(r", start-up and exit .*", "", text) for text in (page, shown)]  # a fast machine has no such time
    assert matches(*texts, numbers_differ=True), f"{shown}\nexpected:\n{page}"


def test_the_time_for_which_slurm_suspended_a_job_is_not_counted_as_start_up(toy_slurm: Any) -> None:
    def is_suspended() -> bool:
        fields = ("sacct", "-X", "-n", "-P", "-o", "Suspended", "-j", toy_slurm.job_id())
        return int(toy_slurm.cluster.order(*fields).strip().rpartition(":")[2]) >= 7

    run = toy_slurm.follow(
        at_recorded_gate(toy_slurm, order(toy_slurm, "scontrol", "suspend", "JOB")),
        (is_suspended, order(toy_slurm, "scontrol", "resume", "JOB")),
        (lambda: toy_slurm.state_of(toy_slurm.job_id()) == "RUNNING", toy_slurm.gate.touch),
        framework=gated(toy_slurm),
        workload={"steps": 8},
        measure={"window": "last"},
    )
    [attempt] = run["attempts"]
    assert attempt["suspended_s"] >= 7
    wall = run["wall_time"]  # the toy prints steps of 4 s together, but needs less
    assert wall["suspended_s"] == pytest.approx(min(attempt["suspended_s"], wall["wall_s"] - 4))
    assert wall["other_s"] == pytest.approx(wall["wall_s"] - 4 - wall["suspended_s"])
    assert f"lost to suspension {wall['suspended_s']:g} s" in toy_slurm.llmb("show", run["run_id"]).stdout


@pytest.mark.slow
def test_a_preemption_is_explained_while_the_run_continues(toy_slurm: Any) -> None:
    spec = toy_slurm.spec(framework=gated(toy_slurm), target={"partition": "scavenger"})
    process = toy_slurm.start("run", spec)
    wait_until(toy_slurm.is_at_gate, "the gate")
    preempt(toy_slurm)()
    [record] = toy_slurm.records
    text = "attempt 0 was preempted; the scheduler requeued the job, and llmb follows attempt 1"
    assert toy_slurm.wait_for_message(process, "requeued the job") == f"llmb: {record.name}: {text}\n"
    assert toy_slurm.wait_for_message(process, "queued") == f"{record.name}: queued, attempt 1: requeued (BeginTime)\n"
    toy_slurm.gate.touch()
    assert process.wait(timeout=DEADLINE_S) == 0
    process.communicate()


def test_preempted_without_requeue(toy_slurm: Any) -> None:
    run = toy_slurm.follow(
        at_gate(toy_slurm, preempt(toy_slurm)),
        framework=gated(toy_slurm),
        target={"partition": "scavenger", "sbatch": {"no-requeue": True}},
    )
    assert (run["state"], run["reason"]) == ("failed", "preempted (after 2 of 5 steps)")


@pytest.mark.slow
def test_requeued_by_an_operator(toy_slurm: Any) -> None:
    requeue = order(toy_slurm, "scontrol", "requeue", "JOB")
    run = toy_slurm.follow(
        at_recorded_gate(toy_slurm, requeue), open_gate(toy_slurm, attempt=1), framework=gated(toy_slurm)
    )
    assert run["state"] == "completed"
    assert len(toy_slurm.journal("end")) == 1
    assert causes(run) == ["requeued", "completed"]


def node_of(toy: Any) -> str:
    return str(toy.cluster.order("squeue", "-h", "-j", toy.job_id(), "-o", "%N").strip())


def fail_node(toy: Any) -> Any:
    """Set the node down and resume it afterwards, so that the jobs of the next test get it."""

    def fail() -> None:
        node = node_of(toy)
        toy.cluster.order("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        toy.cluster.run(
            "scontrol", "update", f"nodename={node}", "state=resume"
        )  # in case it has not resumed by itself
        # Slurm gives no job to a node that may not respond yet, marked with an asterisk
        wait_until(lambda: "*" not in toy.cluster.order("sinfo", "-h", "-n", node, "-o", "%T"), f"a response of {node}")

    return fail


@pytest.mark.smoke
def test_a_node_failure(toy_slurm: Any) -> None:
    run = toy_slurm.follow(
        at_gate(toy_slurm, fail_node(toy_slurm)),
        framework=gated(toy_slurm),
        target={"sbatch": {"no-requeue": True}},
    )
    assert (run["state"], run["reason"]) == ("failed", "node failure (after 2 of 5 steps)")


@pytest.mark.slow
def test_a_node_failure_with_a_requeue_is_followed(toy_slurm: Any) -> None:
    run = toy_slurm.follow(
        at_recorded_gate(toy_slurm, fail_node(toy_slurm)), open_gate(toy_slurm, attempt=1), framework=gated(toy_slurm)
    )
    assert run["state"] == "completed"
    assert (toy_slurm.records[0] / "logs/train.1.log").exists()
    assert causes(run) == ["node failure", "completed"]


def test_a_job_that_cannot_be_launched(toy_slurm: Any) -> None:
    """Slurm cannot open the log of the job."""
    import llmb

    session = llmb.start(llmb.load(toy_slurm.spec()))
    work = toy_slurm.work(session.run_ids[0])
    work.mkdir(parents=True)
    (work / "slurm.log").symlink_to("/proc/not-writable")
    run = toy_slurm.drive(session)
    assert run["state"] == "failed"
    assert "launch failure" in run["reason"]


def test_a_dependency_that_is_never_satisfied(toy_slurm: Any) -> None:
    failed = toy_slurm.cluster.order("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "false").strip()
    run = toy_slurm.follow(target={"dependency": f"afterok:{failed}"})
    assert run["state"] == "failed"
    assert run["reason"] == ("it would never have started: a job that it depends on did not end as required")


def test_a_deadline(toy_slurm: Any) -> None:
    run = toy_slurm.follow(workload={"time_limit": "3h"}, target={"sbatch": {"deadline": "now+2hours"}})
    rejected = "sbatch rejected the job: Batch job submission failed: Requested time limit is invalid"  # since 24.11
    assert run["state"] == "failed"
    assert run["reason"].startswith(("deadline (after 0 of 5 steps)", rejected))


@pytest.mark.parametrize(
    ("workload", "target", "reason", "remedy"),
    [
        (
            {"gpus": 4},
            {"gpus_per_node": 1, "partition": "short"},
            "it would never have started: PartitionNodeLimit",
            "run on GPUs of as many nodes as the partition allows, or `llmb run ",
        ),
        (
            {},
            {"partition": "meagre"},
            "it would never have started: MaxMemPerLimit",
            "set target.mem to ",
        ),
        (
            {"time_limit": "1h"},
            {"partition": "short"},
            "it would never have started: PartitionTimeLimit",
            "`llmb run ",
        ),
    ],
)
def test_a_job_that_would_pend_forever_is_cancelled(
    toy_slurm: Any, workload: dict[str, Any], target: dict[str, Any], reason: str, remedy: str
) -> None:
    toy_slurm.cluster.order("scontrol", "create", "PartitionName=meagre", "Nodes=node1", "MaxMemPerNode=100")
    try:
        run = toy_slurm.follow(workload=workload, target=target)
    finally:
        toy_slurm.cluster.order("scontrol", "delete", "PartitionName=meagre")
    if run["reason"].endswith("Requested node configuration is not available"):
        pytest.skip(f"this version of Slurm {run['reason']}")  # 24.11 counts the nodes of the partition before
    assert (run["state"], run["reason"]) == ("failed", reason)
    assert run["failure"]["remedy"].startswith(remedy)
    states = toy_slurm.cluster.order("squeue", "-h", "-t", "all", "-j", run["job_id"], "-o", "%T").split()
    assert states == ["CANCELLED"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"partition": "nosuch"}, "/run.toml --set target.partition=NAME` with a partition that `sinfo` lists"),
        (
            {"account": "nosuch"},
            "/run.toml --set target.account=NAME --set target.partition=NAME` with a pair that you may use",
        ),
        ({"constraint": "nosuch"}, "/run.toml --set target.constraint=NAME`"),
        ({"qos": "nosuch"}, "/run.toml --set target.qos=NAME`"),
        ({"sbatch": {"no-such-option": True}}, "correct [target.sbatch]; `sbatch --help`"),
    ],
)
def test_a_rejected_job_fails_with_the_message_of_sbatch_and_a_remedy(
    toy_slurm: Any, target: dict[str, Any], message: str
) -> None:
    done = toy_slurm.llmb("run", toy_slurm.spec(target=target))
    assert done.returncode == 4
    assert "sbatch rejected the job: " in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    [run] = toy_slurm.runs("runs")
    assert run["state"] == "failed"


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("exit 3", "rank 1 on node1: exit code 3"),
        ("exit 255", "rank 1 on node1: exit code 255"),
        ("kill 9", "rank 1 on node1: killed by signal 9"),
        ("kill 6", "rank 1 on node1: killed by signal 6"),
    ],
)
def test_the_reason_is_the_rank_that_failed_first(toy_slurm: Any, end: str, reason: str) -> None:
    waiting = {"gate": str(toy_slurm.gate), "gate_step": 3}
    run = toy_slurm.follow(framework={"end": end, "end_step": 2, "end_rank": 1, **waiting}, workload={"gpus": 2})
    assert run["state"] == "failed"
    assert reason in run["reason"]


def test_the_last_output_of_a_rank_on_another_node_is_in_the_log(toy_slurm: Any) -> None:
    prints = (
        "python import sys; [print(line, file=sys.stderr) for line in range(20_000)]; raise MemoryError('of rank 1')"
    )
    failing = {"end": prints, "end_step": 2, "end_rank": 1}
    waiting = {"gate": str(toy_slurm.gate), "gate_step": 3}
    spec = toy_slurm.spec(workload={"gpus": 2}, target={"gpus_per_node": 1}, framework={**failing, **waiting})
    [run] = toy_slurm.runs("run", spec)
    assert len(run["attempts"][0]["nodes"]) == 2
    lines = Path(run["directory"], "logs/train.0.log").read_text().splitlines()
    assert lines.count("1: 19999") == 1
    assert lines.count("1: MemoryError: of rank 1") == 1
    assert (run["failure"]["cause"], run["failure"]["rank"]) == ("the host is out of memory", 1)


def test_a_rank_that_handles_sigterm_may_finish_its_work(toy_slurm: Any) -> None:
    saves = "import signal, sys, time; signal.signal(15, lambda *_: (time.sleep(2), print('saved'), sys.exit()))"
    ready = toy_slurm.folder / "ready"
    end = f"python {saves}; open({str(ready)!r}, 'w'); signal.pause()"
    stops = (ready.exists, order(toy_slurm, "scancel", "JOB"))
    run = toy_slurm.follow(stops, framework={"end": end, "end_step": 2})
    assert run["state"] == "cancelled"
    assert "saved" in Path(run["directory"], "logs/train.0.log").read_text()
