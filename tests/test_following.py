"""Following runs: logs, metrics, and runs that continue if another run or record is broken."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from typing import Any

import pytest
from parts.deadline import DEADLINE_S

import llmb


def test_following_the_logs_of_a_detached_run_brings_it_to_its_end(toy: Any) -> None:
    assert toy.llmb("run", toy.spec(), "--detach").returncode == 0
    [record] = toy.records
    followed = toy.llmb("logs", record.name, "-f")
    assert followed.returncode == 0, followed.stderr
    assert f"llmb: {record.name} (queued) has no logs yet\n" in followed.stderr
    assert followed.stdout == "".join(log.read_text() for log in sorted((record / "logs").iterdir()))
    assert json.loads(toy.llmb("show", record.name, "--json").stdout)["state"] == "completed"


def test_logs_are_printed_as_they_grow_while_another_process_follows_the_run(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"gate": str(toy.gate), "gate_step": 3}))
    toy.wait_for_journal("begin")
    run_id = toy.wait_for_state("running")
    followed = toy.start("logs", run_id, "-f")
    assert [followed.stdout.readline().split()[:3] for _ in range(3)] == [["toy", "step", str(n)] for n in (1, 2, 3)]
    toy.gate.touch()
    rest, _ = followed.communicate(timeout=DEADLINE_S)
    assert [line.split()[2] for line in rest.splitlines()] == ["4", "5"]
    assert (followed.returncode, running.wait(timeout=DEADLINE_S)) == (0, 0)
    running.communicate()


def test_ctrl_c_while_following_logs_prints_how_to_follow_them_last(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"gate": str(toy.gate), "gate_step": 3}))
    run_id = toy.wait_for_state("running")
    followed = toy.start("logs", run_id, "-f")
    assert followed.stdout.readline().startswith("toy step 1 ")
    followed.send_signal(signal.SIGINT)
    _, messages = followed.communicate(timeout=DEADLINE_S)
    assert (followed.returncode, messages.splitlines()[-1]) == (130, f"detached; follow with: llmb logs -f {run_id}")
    toy.gate.touch()
    assert running.wait(timeout=DEADLINE_S) == 0
    running.communicate()


def test_the_mfu_is_known_while_the_run_continues(toy: Any) -> None:
    seen: list[float] = []
    workload = llmb.load(toy.spec(framework={"gate": str(toy.gate), "gate_step": 3}))
    with llmb.start(workload) as session:
        for event in session:
            if isinstance(event, llmb.Progress) and event.state == "running" and event.mfu is not None:
                seen.append(event.mfu)
                toy.gate.touch()
    [result] = session.results
    assert seen[0] == pytest.approx(result.metrics.mfu)


def test_a_target_that_rejects_runs_does_not_stop_the_runs_on_others(toy: Any) -> None:
    workdir = toy.folder / "other"
    toy.append_event(toy.record("bad", target={"workdir": str(workdir)}), state="submitting")
    shutil.rmtree(workdir)
    workdir.write_text("in the way of a directory")
    assert toy.llmb("run", toy.spec("good"), "--detach").returncode == 0
    attached = toy.llmb("attach")
    assert attached.returncode == 4
    assert "llmb cancel" in attached.stderr
    states = {run["state"] for run in json.loads(toy.llmb("runs", "--json").stdout)["runs"]}
    assert states == {"completed", "submitting"}


def test_an_unwritable_work_directory_is_an_error_before_anything_is_recorded(toy: Any) -> None:
    blocked = toy.folder / "a-file"
    blocked.write_text("in the way of a directory")
    spec = toy.spec("bad one", target={"workdir": f"{blocked}/work"})
    bad = toy.llmb("run", spec, "--set", "workload.steps=3")
    assert bad.returncode == 4
    assert bad.stderr.startswith(f"llmb: cannot write in the work directory {blocked}/work on this machine: mkdir: ")
    command = f"llmb run '{spec}' --set workload.steps=3 --set target.workdir=/path/to/folder"
    assert bad.stderr.endswith(f": Not a directory; fix this, or `{command}`\n")
    assert toy.records == []


def test_the_exit_code_reports_a_run_that_failed_before_llmb_detached(toy: Any) -> None:
    done = toy.llmb(
        "run", toy.spec(framework={"task": "data", "task_end": "echo no such dataset >&2; exit 3"}), "--detach"
    )
    assert done.returncode == 1
    assert "llmb attach" not in done.stderr


@pytest.mark.parametrize(("file", "text"), [("run.toml", "workload = 3\n"), ("result.json", "5\n")])
def test_one_damaged_record_does_not_hide_the_others(toy: Any, file: str, text: str) -> None:
    for _ in range(2):
        toy.run()
    damaged, whole = toy.records
    (damaged / file).write_text(text)
    listed = toy.llmb("runs", "--json")
    assert listed.returncode == 0, listed.stderr
    states = {run["run_id"]: run["state"] for run in json.loads(listed.stdout)["runs"]}
    assert states[whole.name] == "completed"
    assert damaged.name in states


@pytest.mark.parametrize("name", ["LLMB_RUN_DIR", "RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"])
def test_variables_that_llmb_sets_for_every_task_cannot_be_overridden(toy: Any, name: str) -> None:
    rejected = toy.llmb("validate", toy.spec(env={name: "1"}))
    assert rejected.returncode == 2
    assert f"env.{name}: llmb sets this variable for each task" in rejected.stderr


def test_a_secret_is_rejected_in_every_table(toy: Any) -> None:
    rejected = toy.llmb("validate", toy.spec(framework={"hf_access_token": "hf_abc"}))
    assert rejected.returncode == 2
    assert "framework.hf_access_token: secrets are not allowed in a spec" in rejected.stderr
    assert "hf_abc" not in rejected.stderr + rejected.stdout


@pytest.mark.parametrize("end", ["CONT", "KILL"])
def test_a_stopped_process_that_follows_a_run_is_named_with_what_to_do(toy: Any, end: str) -> None:
    running = toy.start("run", toy.spec(framework={"gate": str(toy.gate), "gate_step": 3}), start_new_session=True)
    run_id = toy.wait_for_state("running")
    running.send_signal(signal.SIGSTOP)
    cancelling = toy.start("cancel", run_id)
    message = toy.wait_for_message(cancelling, "stopped")
    assert message.startswith(f"llmb: process {running.pid} follows {run_id}, but it is stopped, as by Ctrl-Z: ")
    [command] = [each for each in message.split("`") if each == f"kill -{end} {running.pid}"]
    subprocess.run(command.split(), check=True)
    out, err = cancelling.communicate(timeout=DEADLINE_S)
    assert (cancelling.returncode, out.splitlines()[0]) == (0, f"{run_id}  cancelled"), err
    running.communicate(timeout=DEADLINE_S)


def test_ctrl_c_during_a_cancellation_prints_that_it_may_not_be_complete(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"gate": str(toy.gate), "gate_step": 3}), start_new_session=True)
    run_id = toy.wait_for_state("running")
    running.send_signal(signal.SIGSTOP)  # it locks the run, so nothing is cancelled
    cancelling = toy.start("cancel", run_id)
    toy.wait_for_message(cancelling, "stopped")
    cancelling.send_signal(signal.SIGINT)
    _, messages = cancelling.communicate(timeout=DEADLINE_S)
    last = f"detached; the cancellation may be incomplete; complete it with: llmb attach {run_id}"
    assert (cancelling.returncode, messages.splitlines()[-1]) == (130, last)
    running.send_signal(signal.SIGCONT)
    assert running.wait(timeout=DEADLINE_S) == 1
    running.communicate()
