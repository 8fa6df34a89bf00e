"""Ends that need a Slurm cluster of their own: memory limits, no accounting, daemons that die, jobs purged early."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from parts import disks
from parts.deadline import DEADLINE_S
from parts.slurm import Cluster
from parts.toy import at_gate, gated

pytestmark = [pytest.mark.real, pytest.mark.slow]


GIVE_UP_SOON = {"MessageTimeout": "5"}  # seconds in which a client tries to connect to a daemon that is gone
OwnCluster = Callable[..., AbstractContextManager[Any]]


@pytest.fixture
def own_cluster(toy_slurm: Any, monkeypatch: pytest.MonkeyPatch) -> OwnCluster:
    """Return a function that starts a cluster of one node for the runs of a block."""

    @contextmanager
    def start(**options: Any) -> Iterator[Any]:
        with Cluster(nodes=1, **options) as cluster:
            for name, value in cluster.env.items():
                monkeypatch.setenv(name, value)
            toy_slurm.cluster = cluster
            yield toy_slurm

    return start


@pytest.fixture
def toy_cgroups(own_cluster: OwnCluster) -> Iterator[Any]:
    """Start a cluster with memory limits."""
    if not Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists():
        pytest.skip("no cgroups of version 1")
    with own_cluster(accounting=False, cgroups=True) as toy:
        yield toy


def test_out_of_memory_of_a_step(toy_cgroups: Any) -> None:
    run = toy_cgroups.follow(framework={"end": "memory", "end_step": 2}, target={"mem": "60M"})
    assert run["state"] == "failed"
    assert run["reason"].startswith("out of memory")
    assert "after 2 of 5 steps" in run["reason"]


@pytest.fixture
def toy_forgetful(own_cluster: OwnCluster) -> Iterator[Any]:
    """Start a cluster without accounting that purges jobs two seconds after their end."""
    with own_cluster(accounting=False, settings={"MinJobAge": "2"}) as toy:
        yield toy


def forgotten(toy: Any) -> str:
    """Return the id of a run whose job Slurm has purged."""
    import llmb

    session = llmb.start(llmb.load(toy.spec()))
    session.wait(until="submitted")
    toy.wait(lambda: (toy.work(session.run_ids[0]) / "ended").exists())
    toy.wait(lambda: session.run_ids[0] not in toy.jobs())
    return str(session.run_ids[0])


def test_the_end_of_a_purged_job_comes_from_its_directory(toy_forgetful: Any) -> None:
    run_id = forgotten(toy_forgetful)
    [run] = toy_forgetful.runs("attach", run_id)
    assert run["state"] == "completed"
    assert run["metrics"]["step_time_s"] == 0.5


def test_the_end_of_a_purged_job_comes_from_accounting_once_it_responds(own_cluster: OwnCluster) -> None:
    with own_cluster(settings={"MinJobAge": "2", **GIVE_UP_SOON}) as toy:
        run_id = forgotten(toy)
        (toy.work(run_id) / "ended").unlink()
        toy.cluster.kill("slurmdbd")
        attached = toy.start("attach", run_id, "--json")
        assert any("waiting for Slurm's accounting, which does not respond" in line for line in attached.stderr)
        toy.cluster.start_accounting()
        out, _ = attached.communicate(timeout=DEADLINE_S)
    [run] = json.loads(out)["runs"]
    assert run["state"] == "completed"


def test_a_purged_job_without_a_known_end_is_lost(toy_forgetful: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import llmb
    from llmb_slurm import lost_jobs

    run_id = forgotten(toy_forgetful)
    (toy_forgetful.work(run_id) / "ended").unlink()
    monkeypatch.setattr(lost_jobs, "LOST_AFTER_S", 1)
    run = toy_forgetful.drive(llmb.attach([run_id]))
    assert (run["state"], run["job_id"] is None) == ("lost", False)
    assert "Slurm's queue no longer lists the job, and its accounting is disabled" in run["reason"]


@pytest.fixture(params=disks.LIMITS)
def limited_work(request: pytest.FixtureRequest, toy_slurm: Any) -> Iterator[Path]:
    """Return a work directory that is soon full, or whose quota is soon exceeded."""
    workdir = Path(toy_slurm.workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    with disks.LIMITS[request.param](workdir):
        yield workdir


def test_a_full_disk_is_the_reason_and_not_the_framework(
    limited_work: Path, own_cluster: OwnCluster, request: pytest.FixtureRequest
) -> None:
    with own_cluster(accounting=False) as toy:  # it starts after the disk, which its node therefore sees

        def fill() -> None:
            disks.fill(limited_work)
            toy.gate.touch()

        run = toy.follow(at_gate(toy, fill), framework=gated(toy, end="exit 1", end_step=3))
    assert run["state"] == "failed"
    assert f"nothing can be written in {limited_work}: " in run["reason"]
    assert request.node.callspec.params["limited_work"] in run["reason"]


def test_llmb_waits_for_a_controller_that_restarts(own_cluster: OwnCluster) -> None:
    """On its own cluster, because a node that had a job meanwhile gives no GPU to the steps of later jobs."""
    with own_cluster(accounting=False, settings=GIVE_UP_SOON) as toy:
        running = toy.start("run", toy.spec(framework=gated(toy)), "--json")
        toy.wait(toy.is_at_gate)
        toy.wait_for_state("running")
        toy.cluster.kill("slurmctld", signal.SIGTERM)  # the controller saves its state
        lines = iter(running.stderr.readline, "")
        assert any("cannot query Slurm" in line and "retrying" in line for line in lines)
        toy.gate.touch()
        toy.cluster.start_controller()
        out, _ = running.communicate(timeout=DEADLINE_S)
    [run] = json.loads(out)["runs"]
    assert run["state"] == "completed"


def lose_state(cluster: Cluster) -> None:
    """Restart the controller without its saved state, so that it gives the ids of earlier jobs to new ones."""
    for daemon in ("slurmctld", *cluster.nodes):
        cluster.kill(daemon)
    shutil.rmtree(cluster.folder / "state")
    (cluster.folder / "state").mkdir()
    cluster.start_controller()
    for node in cluster.nodes:
        cluster.start_node(node)


def submit_other_job(toy: Any, job_id: str, command: str) -> None:
    """Submit a job that is no run, and check that it has this id."""
    other = ("sbatch", "--parsable", "--no-requeue", "-o", "/dev/null", "--wrap", command)
    assert toy.cluster.order(*other).strip() == job_id


def test_a_job_with_the_id_of_a_lost_run_is_not_cancelled(own_cluster: OwnCluster) -> None:
    with own_cluster(accounting=False) as toy:
        toy.llmb("run", toy.spec(), "--detach")
        toy.wait(lambda: "COMPLETED" in toy.cluster.order("squeue", "-h", "-t", "all", "-o", "%T"))
        [ended] = toy.workdir.glob("runs/*/ended")
        missing = ended.rename(ended.with_name("missing"))
        os.utime(missing, (0, 0))  # the queue has lacked the job for long
        lose_state(toy.cluster)
        submit_other_job(toy, toy.job_id(), "sleep infinity")
        toy.wait(lambda: toy.state_of(toy.job_id()) == "RUNNING")
        [run] = toy.runs("cancel", toy.records[0].name)
        assert toy.state_of(toy.job_id()) == "RUNNING"
    assert run["state"] == "lost"


def test_a_run_has_its_own_end_if_another_job_has_its_id(own_cluster: OwnCluster) -> None:
    with own_cluster(settings={"MinJobAge": "2"}) as toy:
        toy.llmb("run", toy.spec(), "--detach")
        toy.wait(lambda: "COMPLETED" in toy.cluster.accounts("State"))
        lose_state(toy.cluster)
        submit_other_job(toy, toy.job_id(), "sleep infinity")
        toy.cluster.order("scancel", toy.job_id())
        toy.wait(lambda: any(state.startswith("CANCELLED") for state in toy.cluster.accounts("State")))
        toy.wait(lambda: not toy.jobs())
        (toy.work(toy.records[0].name) / "ended").unlink()
        [run] = toy.runs("attach", toy.records[0].name)
    assert run["state"] == "completed"


def test_a_renamed_run_has_its_own_end_after_slurm_forgot_its_job(own_cluster: OwnCluster) -> None:
    with own_cluster(settings={"MinJobAge": "2"}) as toy:
        toy.llmb("run", toy.spec(framework=gated(toy)), "--detach")
        toy.wait(toy.is_at_gate)
        toy.cluster.order("scontrol", "update", f"jobid={toy.job_id()}", "name=renamed")
        toy.gate.touch()
        toy.wait(lambda: "COMPLETED|renamed" in toy.cluster.accounts("State,JobName"))
        toy.wait(lambda: not toy.jobs())
        (toy.work(toy.records[0].name) / "ended").unlink()
        [run] = toy.runs("attach", toy.records[0].name)
    assert run["state"] == "completed"


REJECT_MEM = """\
function slurm_job_submit(job, partitions, user)
  if job.min_mem_per_node ~= nil then
    slurm.log_user("this cluster does not schedule memory, remove --mem")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end
"""


def apply_policy(cluster: Cluster, policy: str) -> None:
    """Restart the controller with a job_submit plugin in Lua."""
    (cluster.folder / "job_submit.lua").write_text(policy)
    with (cluster.folder / "slurm.conf").open("a") as conf:
        conf.write("JobSubmitPlugins=lua\n")
    cluster.kill("slurmctld", signal.SIGTERM)
    cluster.start_controller()


def test_runs_and_tasks_of_a_site_that_rejects_mem(own_cluster: OwnCluster) -> None:
    with own_cluster(accounting=False) as toy:
        apply_policy(toy.cluster, REJECT_MEM)
        rejected = toy.llmb("run", toy.spec())
        task = {"task": "data", "task_on": "scheduler"}
        [run] = toy.runs("run", toy.spec(framework=task, target={"mem": "none"}))
        [other] = toy.runs("run", toy.spec(target={"mem": "none", "sbatch": {"mem-per-cpu": "200M"}}))
    assert (rejected.returncode, "target.mem=none" in rejected.stderr) == (4, True), rejected.stderr
    assert (run["state"], other["state"]) == ("completed", "completed")


def test_a_node_whose_daemon_dies(own_cluster: OwnCluster) -> None:
    with own_cluster(accounting=False, settings={"SlurmdTimeout": "10"}) as toy:
        run = toy.follow(
            at_gate(toy, lambda: toy.cluster.kill("node1")),
            framework=gated(toy),
            target={"sbatch": {"no-requeue": True}},
        )
    assert (run["state"], run["reason"]) == ("failed", "node failure (after 2 of 5 steps)")


def test_attempts_without_accounting_come_from_the_job(toy_forgetful: Any) -> None:
    def requeue() -> None:
        toy_forgetful.cluster.order("scontrol", "requeue", toy_forgetful.job_id())

    run = toy_forgetful.follow(
        at_gate(toy_forgetful, requeue),
        at_gate(toy_forgetful, toy_forgetful.gate.touch, attempt=1),
        framework=gated(toy_forgetful),
    )
    first, last = run["attempts"]
    assert (first["cause"], last["cause"]) == ("requeued", "completed")
    assert first["nodes"] == last["nodes"] == ["node1"]
    assert first["start"] <= first["end"] <= last["start"] <= last["end"]
    assert any("accounting is disabled" in note for note in run["notes"])


POLICY = """
function slurm_job_submit(job, partitions, user)
  slurm.log_user("Please request a project")
  slurm.log_user("See https://site.example/projects")
  return slurm.ERROR
end
function slurm_job_modify(job, record, partitions, user) return slurm.SUCCESS end
return slurm
"""


def test_doctor_prints_why_the_policy_of_a_site_rejects_the_jobs(own_cluster: OwnCluster) -> None:
    """Slurm itself reports an unspecified error on the last line."""
    with own_cluster(accounting=False) as toy:
        apply_policy(toy.cluster, POLICY)
        done = toy.llmb("doctor", toy.spec(), "--json")
    checks = {each["name"]: each["detail"] for each in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert "the job: Please request a project; See https://site.example/projects; " in checks["submission"]
