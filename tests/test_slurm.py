"""Runs of the toy framework on a real Slurm cluster: submitted once, followed, cancelled, recorded."""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.deadline import DEADLINE_S
from parts.reserved_files import replaceable_files
from parts.toy import gated

pytestmark = pytest.mark.real

TOKEN = "very-secret-7d1f9c"


def env_of(file: Path) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in file.read_text().split("\0") if entry)
    return {name: value for name, _, value in pairs}


def wait_at_gate(toy: Any, count: int = 1) -> None:
    toy.wait(lambda: sum("toy step 2" in log.read_text() for log in toy.workdir.glob("runs/*/logs/train.*")) >= count)


@pytest.mark.smoke
def test_a_run_is_submitted_followed_and_recorded(toy_slurm: Any) -> None:
    run = toy_slurm.run(workload={"gpus": 2})
    assert run["state"] == "completed"
    assert run["metrics"]["step_time_s"] == 0.5
    assert toy_slurm.jobs()[run["run_id"]] == [run["job_id"]]
    [record] = toy_slurm.records
    assert toy_slurm.steps_of(record) == [1, 2, 3, 4, 5]
    assert len(toy_slurm.journal("begin")) == 2
    assert replaceable_files(toy_slurm.work(run["run_id"]), toy_slurm.folder, toy_slurm.spec()) == {"train.sh"}


# the environment of a rank


@pytest.mark.smoke
def test_every_rank_has_the_environment_of_the_contract(toy_slurm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVATE_TO_LLMB", "yes")
    run = toy_slurm.run(
        workload={"gpus": 4},
        framework={"dump": True, "needs_gpus": True},
        target={"gpus_per_node": 2},
        env={"ODD": 'it\'s\n"$(id)"'},
    )
    assert run["state"] == "completed"
    work = toy_slurm.work(run["run_id"])
    for rank in range(4):
        env = env_of(work / f"env.{rank}")
        ranks = {"RANK": rank, "LOCAL_RANK": rank % 2, "NODE_RANK": rank // 2, "WORLD_SIZE": 4, "LOCAL_WORLD_SIZE": 2}
        for name, value in ranks.items():
            assert env[name] == env[f"LLMB_{name}"] == str(value)
        assert env["MASTER_ADDR"] == env["LLMB_MASTER_ADDR"] == "node1"
        assert env["MASTER_PORT"] == env["LLMB_MASTER_PORT"]
        assert (env["LLMB_JOB_ID"], env["LLMB_RUN_DIR"], env["LLMB_ATTEMPT"]) == (run["run_id"], str(work), "0")
        assert env["ODD"] == 'it\'s\n"$(id)"'
        assert env["SLURMD_NODENAME"] == f"node{1 + rank // 2}"
        assert len(env["CUDA_VISIBLE_DEVICES"].split(",")) == 2
        assert "PRIVATE_TO_LLMB" not in env


def test_a_phase_of_the_first_rank_is_one_rank_alone(toy_slurm: Any) -> None:
    run = toy_slurm.run(workload={"gpus": 2}, framework={"warm_up": True})
    words = [line.split()[0::2] for line in toy_slurm.journal()]
    assert words[:2] == [["begin", "warm-up.0"], ["end", "warm-up.0"]]  # ends before the next phase begins
    assert sorted(phase for word, phase in words[2:] if word == "begin") == ["train.0", "train.1"]
    assert run["state"] == "completed"


@pytest.mark.slow
@pytest.mark.parametrize("write_output", ["none", "empty"])
def test_a_missing_output_ends_the_job(toy_slurm: Any, write_output: str) -> None:
    run = toy_slurm.follow(framework={"output": True, "write_output": write_output})
    assert run["state"] == "failed"
    assert "phase train: its output" in run["reason"]
    assert "is missing or empty" in run["reason"]


# exactly-once submission


@pytest.mark.slow
def test_submitting_twice_starts_one_job(toy_slurm: Any) -> None:
    toy_slurm.llmb("run", toy_slurm.spec(framework={"gate": str(toy_slurm.gate), "gate_step": 2}), "--detach")
    [record] = toy_slurm.records
    work = toy_slurm.work(record.name)
    events = record / "events.jsonl"
    before = [line for line in events.read_text().splitlines() if '"queued"' not in line and '"running"' not in line]
    for known in ((work / "job_id").read_text(), ""):  # with job id, or as if sbatch was killed before its answer
        (work / "job_id").write_text(known)
        events.write_text("\n".join(before) + "\n")
        wait_at_gate(toy_slurm)
        running = toy_slurm.start("attach", record.name, "--json")
        toy_slurm.wait_for_state("running")
        running.kill()
        running.communicate()
        assert len(toy_slurm.jobs()[record.name]) == 1
    toy_slurm.gate.touch()
    [run] = toy_slurm.runs("attach", record.name)
    assert run["state"] == "completed"
    assert toy_slurm.jobs()[record.name] == [run["job_id"]]


def test_a_job_whose_submission_was_lost_is_found_in_the_queue(toy_slurm: Any) -> None:
    """Check a job that is pending because all nodes are in use."""
    taken = toy_slurm.cluster.order(
        *("sbatch", "--parsable", "-N", "4", "--exclusive", "-o", "/dev/null", "--wrap", "sleep infinity")
    ).strip()
    toy_slurm.wait(lambda: toy_slurm.state_of(taken) == "RUNNING")  # before that, the run could start first
    toy_slurm.llmb("run", toy_slurm.spec(), "--detach")
    [record] = toy_slurm.records
    (toy_slurm.work(record.name) / "job_id").write_text("")
    events = record / "events.jsonl"
    events.write_text("\n".join(events.read_text().splitlines()[:2]) + "\n")  # planned, submitting
    running = toy_slurm.start("attach", record.name, "--json")
    toy_slurm.wait_for_state("queued")
    toy_slurm.cluster.order("scancel", taken)
    out, _ = running.communicate(timeout=DEADLINE_S)
    [run] = json.loads(out)["runs"]
    assert run["state"] == "completed"
    assert toy_slurm.jobs()[record.name] == [run["job_id"]]


@pytest.mark.slow
def test_a_duplicate_job_exits(toy_slurm: Any) -> None:
    run = toy_slurm.run()
    work = toy_slurm.work(run["run_id"])
    twin = toy_slurm.cluster.run("sbatch", "--wait", "--chdir", str(work), str(work / "job.sh"))
    assert twin.returncode == 1
    assert f"exits, because job {run['job_id']} runs in {work}" in (work / "slurm.log").read_text()
    assert len(toy_slurm.journal("begin")) == 1


# tasks


@pytest.mark.slow
def test_a_task_of_two_runs_is_one_job(toy_slurm: Any) -> None:
    spec = toy_slurm.spec(framework={"task": "data", "task_on": "scheduler"}, workload={"dtype": ["bf16", "fp8"]})
    runs = toy_slurm.runs("run", spec)
    assert [run["state"] for run in runs] == ["completed"] * 2
    [run] = toy_slurm.runs("run", toy_slurm.spec(framework={"task": "data", "task_on": "scheduler"}))
    assert run["state"] == "completed"
    assert len(toy_slurm.journal("task-begin")) == 1


@pytest.mark.slow
def test_two_processes_share_a_task(toy_slurm: Any) -> None:
    options = {"task": "data", "task_on": "scheduler", "task_gate": str(toy_slurm.task_gate)}
    both = [toy_slurm.start("run", toy_slurm.spec(name, framework=options), "--json") for name in "ab"]
    toy_slurm.wait_for_journal("task-begin")
    toy_slurm.wait(lambda: len(toy_slurm.records) == 2)
    toy_slurm.task_gate.touch()
    for each in both:
        out, err = each.communicate(timeout=DEADLINE_S)
        assert json.loads(out)["runs"][0]["state"] == "completed", err
    assert len(toy_slurm.journal("task-begin")) == 1


def test_a_failed_task_shows_its_log_and_is_repeated_by_the_next_run(toy_slurm: Any) -> None:
    options = {"task": "data", "task_on": "scheduler"}
    run = toy_slurm.follow(framework={**options, "task_end": "echo no room >&2; exit 4"})
    assert run["state"] == "failed"
    assert "toy data could not be created" in run["reason"]
    assert "no room" in run["reason"]
    assert toy_slurm.follow(framework=options)["state"] == "completed"


# following


def test_all_runs_are_polled_with_one_query(toy_slurm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import llmb

    calls = tmp_path / "calls"
    for name in ("squeue", "sacct", "scontrol"):
        wrapper = tmp_path / "bin" / name
        wrapper.parent.mkdir(exist_ok=True)
        wrapper.write_text(f'#!/bin/bash\necho {name} >>{calls}\nexec {shutil.which(name)} "$@"\n')
        wrapper.chmod(0o755)
    real_path = os.environ["PATH"]
    options = {"gate": str(toy_slurm.gate), "gate_step": 2, "task": "data", "task_on": "scheduler"}
    session = llmb.start(llmb.load(toy_slurm.spec(framework=options, workload={"repeats": 4})))
    ticks = 0

    def wait(_seconds: float) -> None:
        nonlocal ticks
        ticks += 1
        monkeypatch.setenv("PATH", real_path)
        if len(toy_slurm.journal("begin")) == 4:
            toy_slurm.gate.touch()
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{real_path}")

    session.wait(sleep=wait)
    assert [run.state for run in session.results] == ["completed"] * 4
    queries = [line for line in calls.read_text().split() if line in ("squeue", "sacct")]
    assert len(queries) <= ticks + 1


@pytest.mark.slow
def test_a_pending_run_shows_its_reason_and_the_command_that_releases_a_held_job(toy_slurm: Any) -> None:
    toy_slurm.start("run", toy_slurm.spec(target={"sbatch": {"hold": True}}), "--detach").communicate()
    [record] = toy_slurm.records
    running = toy_slurm.start("attach", record.name)
    advice = toy_slurm.wait_for_message(running, f"{record.name} waits (JobHeldUser): release the job with ")
    assert toy_slurm.wait_for_message(running, "queued, JobHeldUser")
    release = advice.split("`")[1]
    assert release == f"scontrol release {toy_slurm.job_id()}"
    toy_slurm.cluster.order(*release.split())
    _, more = running.communicate(timeout=DEADLINE_S)
    assert (running.returncode, "scontrol" in more) == (0, False)


def test_a_job_that_an_operator_requeued_and_holds_or_suspended_is_shown_as_such(toy_slurm: Any) -> None:
    running = toy_slurm.start("run", toy_slurm.spec(framework={"gate": str(toy_slurm.gate), "gate_step": 2}))
    wait_at_gate(toy_slurm, 1)
    toy_slurm.wait_for_state("running")
    toy_slurm.cluster.order("scontrol", "suspend", toy_slurm.job_id())
    assert toy_slurm.wait_for_message(running, "train, suspended by the scheduler, step 2 of 5")
    toy_slurm.cluster.order("scontrol", "resume", toy_slurm.job_id())
    toy_slurm.wait(lambda: toy_slurm.state_of(toy_slurm.job_id()) == "RUNNING")
    toy_slurm.cluster.order("scontrol", "requeuehold", toy_slurm.job_id())
    advice = toy_slurm.wait_for_message(running, "held state): release the job with `scontrol release ")
    toy_slurm.gate.touch()
    toy_slurm.cluster.order(*advice.split("`")[1].split())
    _, more = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 0, more


def test_a_running_job_whose_name_and_comment_an_operator_changed_is_followed_and_cancelled(toy_slurm: Any) -> None:
    toy_slurm.llmb("run", toy_slurm.spec(framework=gated(toy_slurm)), "--detach")
    toy_slurm.wait(toy_slurm.is_at_gate)
    job_id = toy_slurm.job_id()
    toy_slurm.cluster.order("scontrol", "update", f"jobid={job_id}", "JobName=renamed", "Comment=text of the site")
    attached = toy_slurm.start("attach", toy_slurm.records[0].name)
    assert toy_slurm.wait_for_message(attached, "train, step 2 of 5")
    attached.send_signal(signal.SIGINT)
    attached.communicate(timeout=DEADLINE_S)
    [run] = toy_slurm.runs("cancel", toy_slurm.records[0].name)
    assert (run["state"], toy_slurm.state_of(job_id)) == ("cancelled", "")
    assert [attempt["cause"] for attempt in run["attempts"]] == [f"cancelled by {getpass.getuser()}"]


def test_cancel_ends_one_job_only(toy_slurm: Any) -> None:
    gate = {"gate": str(toy_slurm.gate), "gate_step": 2}
    other = toy_slurm.cluster.order("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep infinity").strip()
    toy_slurm.wait(lambda: toy_slurm.state_of(other) == "RUNNING")
    toy_slurm.llmb("run", toy_slurm.spec(framework=gate, workload={"repeats": 2}), "--detach")
    first, second = (record.name for record in toy_slurm.records)
    wait_at_gate(toy_slurm, 2)
    [cancelled] = toy_slurm.runs("cancel", first)
    assert cancelled["state"] == "cancelled"
    assert toy_slurm.state_of(other) == "RUNNING"
    toy_slurm.cluster.order("scancel", other)
    toy_slurm.gate.touch()
    [run] = toy_slurm.runs("attach", second)
    assert run["state"] == "completed"


# the record


def test_the_record_contains_the_provenance(toy_slurm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    run = toy_slurm.run(
        workload={"gpus": 2}, framework={"secrets": ["TOY_TOKEN"]}, target={"gpus_per_node": 1}, env={"ODD": "a=b"}
    )
    text = (toy_slurm.records[0] / "run.toml").read_text()
    provenance = tomllib.loads(text)["provenance"]
    assert provenance["host"] == ["node1", "node2"]
    assert provenance["slurm"].startswith("slurm")
    assert provenance["kernel"] == os.uname().release
    assert provenance["job_id"] == run["job_id"]
    assert provenance["env"]["ODD"] == "a=b"
    assert "TOY_TOKEN" not in provenance["env"]
    assert provenance["llmb"]
    assert TOKEN not in text
    [again] = toy_slurm.runs("run", str(toy_slurm.records[0] / "run.toml"))  # the record is a spec
    assert again["state"] == "completed"


# the target


def test_doctor_checks_the_cluster(toy_slurm: Any) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"], "llmb", "targets.toml")
    file.parent.mkdir(parents=True)
    file.write_text(tomli_w.dumps({"eos": {"scheduler": "slurm", "workdir": str(toy_slurm.workdir)}}))
    done = toy_slurm.llmb("doctor", "eos", "--json")
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    assert checks["Slurm"]["detail"].startswith("slurm")
    assert checks["partition"]["detail"] == "batch: 4 nodes, gpu:h100:8, time limit 1-00:00:00"
    assert "proj1" in checks["account"]["detail"]
    assert not checks["pyxis"]["ok"]
    assert checks["clock"]["ok"]
    assert checks["work directory"]["ok"]
    assert not subprocess.run(["ls", str(toy_slurm.workdir)], capture_output=True).stdout  # doctor creates no files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "request_gpus", "requested"),
    [
        ("", "gres", "MinMemoryCPU=100M"),  # the default of the cluster
        ("mem-per-cpu", "gres", "MinMemoryCPU=300M"),
        ("mem-per-gpu", "gres", "MemPerTres=gres.gpu:300"),
        ("mem-per-gpu", "gpus-per-node", "MemPerTres=gres.gpu:300"),
    ],
)
def test_memory_per_cpu_or_gpu_replaces_memory_per_node(
    toy_slurm: Any, option: str, request_gpus: str, requested: str
) -> None:
    run = toy_slurm.run(
        workload={"gpus": 2},
        framework={"warm_up": True, "needs_gpus": True, "task": "data", "task_on": "scheduler"},
        target={"mem": "none", "gpu_request": request_gpus, "sbatch": {option: "300M"} if option else {}},
        telemetry={"interval": 1},
    )
    assert run["state"] == "completed", run["reason"]
    assert re.search(requested, toy_slurm.cluster.order("scontrol", "-o", "show", "job", run["job_id"]))


@pytest.mark.parametrize("variable", ["SBATCH_ACCOUNT", "SLURM_ACCOUNT"])
@pytest.mark.parametrize(("own", "account"), [(None, "proj2"), ("proj1", "proj1")])
def test_the_default_account_comes_from_the_environment_of_the_host(
    toy_slurm: Any, monkeypatch: pytest.MonkeyPatch, variable: str, own: str | None, account: str
) -> None:
    import llmb

    monkeypatch.setenv(variable, "proj2")
    session = llmb.start(llmb.load(toy_slurm.spec(target={"account": own} if own else {})))
    session.wait(until="submitted")
    assert f"Account={account} " in toy_slurm.cluster.order("scontrol", "-o", "show", "job", toy_slurm.job_id())
