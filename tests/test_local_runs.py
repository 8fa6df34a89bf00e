"""Complete runs of the toy framework with the local scheduler, on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import subprocess
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S
from parts.forked import Started
from parts.reserved_files import replaceable_files
from parts.toy import job_script_of, supervisor_of

TOKEN = "very-secret-7d1f9c"
TOY_FILES = {"train.sh"}
"""Files of the toy framework itself."""


def processes_of(work: Path) -> list[int]:
    """Return the ids of all processes of a job."""
    mark = f"LLMB_RUN_DIR={work}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def end(process: Started) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=DEADLINE_S)
    assert out, err
    return list(json.loads(out)["runs"])


def free(toy: Any) -> bool:
    """Check whether the lock of the machine is free."""
    return subprocess.run(["flock", "-n", str(toy.folder / "machine.lock"), "true"]).returncode == 0


def test_a_job_of_this_machine_has_one_attempt_and_a_goodput(toy: Any) -> None:
    run = toy.run(workload={"steps": 12})
    [attempt] = run["attempts"]
    assert attempt["cause"] == "completed"
    assert attempt["nodes"] == [os.uname().nodename]
    assert attempt["start"] <= attempt["end"]
    assert replaceable_files(toy.work(run["run_id"]), toy.folder, toy.spec()) <= TOY_FILES
    assert 0 < run["goodput"] <= 1
    parts = ("productive_s", "requeues_s", "checkpoints_s", "spikes_s", "suspended_s", "other_s")
    assert sum(run["wall_time"][name] for name in parts) == pytest.approx(run["wall_time"]["wall_s"])


def test_settings_of_bash_that_the_user_exports_do_not_disturb_a_run(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings").write_text("echo welcome; cd /; set -e\n")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "settings"))
    monkeypatch.setenv("BASH_FUNC_cd%%", "() { echo $1; }")
    monkeypatch.setenv("CDPATH", "/usr")
    assert toy.run(framework={"task": "data"})["state"] == "completed"


def test_no_other_user_can_write_files_of_a_run_with_an_open_umask(toy: Any) -> None:
    before = os.umask(0)
    try:
        run = toy.run(framework={"task": "data"})
    finally:
        os.umask(before)
    assert run["state"] == "completed"
    written = [each for each in (toy.home / "work").rglob("*") if not each.is_symlink()]
    assert [each for each in written if each.stat().st_mode & 0o002] == []


# what happens to processes


def test_a_killed_supervisor_is_a_lost_run_that_leaves_nothing_behind(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"gate": str(toy.gate)}, workload={"gpus": 2}), "--json")
    toy.wait_for_journal("begin", 2)
    run_id = toy.wait_for_state("running")
    os.kill(supervisor_of(toy.work(run_id)), signal.SIGKILL)
    [run] = end(running)
    assert run["state"] == "lost"
    assert "was killed" in run["failure"]["cause"]
    assert processes_of(toy.work(run_id)) == []
    assert free(toy)
    assert toy.journal("end") == []


def test_a_rank_that_is_killed_is_named_with_its_signal_and_ends_the_others(toy: Any) -> None:
    options = {"gate": str(toy.gate), "gate_step": 3, "end": "kill 9", "end_step": 2, "end_rank": 1}
    run = toy.run(framework=options, workload={"gpus": 4})
    assert run["state"] == "failed"
    assert "phase train, rank 1: killed by signal 9 (exit code 137)" in run["failure"]["cause"]
    assert run["failure"]["rank"] == 1
    assert not Path(run["directory"], "logs/out.log").exists(), "bash reports the ranks that llmb ends"
    assert "toy step 1" in run["failure"]["evidence"]
    assert processes_of(toy.work(run["run_id"])) == []
    assert toy.journal("end") == []


def test_the_last_lines_are_those_of_the_rank_that_failed(toy: Any) -> None:
    options = {"gate": str(toy.gate), "gate_step": 3, "end": "exit 3", "end_step": 2, "end_rank": 1, "warm_up": True}
    run = toy.run(framework=options, workload={"gpus": 4})
    assert run["failure"]["rank"] == 1
    assert run["failure"]["evidence"].endswith("toy step 2 time 0.5 loss 2.5 | toy: giving up")


def test_a_killed_job_script_ends_its_ranks(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"gate": str(toy.gate)}), "--json")
    toy.wait_for_journal("begin")
    work = toy.work(toy.wait_for_state("running"))
    os.kill(job_script_of(work), signal.SIGKILL)
    [run] = end(running)
    assert run["state"] == "failed"
    assert "the job's script was killed by signal 9" in run["failure"]["cause"]
    assert processes_of(work) == []


def test_a_training_that_ignores_term_is_killed(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"gate": str(toy.gate), "ignore_term": True}), "--json")
    toy.wait_for_journal("begin")
    run_id = toy.wait_for_state("running")
    [cancelled] = toy.runs("cancel", run_id)
    assert cancelled["state"] == "cancelled"
    assert end(running) == [cancelled]
    assert processes_of(toy.work(run_id)) == []


def test_ctrl_c_detaches_and_the_run_continues(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"gate": str(toy.gate)}), start_new_session=True)
    toy.wait_for_journal("begin")
    run_id = toy.wait_for_state("running")
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 130
    assert f"llmb attach {run_id}" in err
    assert "Traceback" not in err
    toy.gate.touch()
    [run] = toy.runs("attach", run_id)
    assert run["state"] == "completed"


# turns


@pytest.mark.slow
def test_runs_of_several_llmb_take_turns_and_a_killed_one_frees_the_machine(toy: Any) -> None:
    spec = toy.spec(framework={"gate": str(toy.gate)})
    first = toy.start("run", spec, "--json")
    toy.wait_for_journal("begin")
    others = [toy.start("run", toy.spec(), "--json") for _ in range(2)]
    toy.wait(lambda: len(toy.records) == 3 and all((toy.work(each.name) / "started").exists() for each in toy.records))
    assert len(toy.journal("begin")) == 1
    run_id = toy.journal("begin")[0].split()[1]
    first.kill()
    first.communicate()
    os.kill(supervisor_of(toy.work(run_id)), signal.SIGKILL)
    assert len(toy.journal("begin")) == 1  # its orphaned rank still holds the machine
    [lost] = toy.runs("attach", run_id)
    assert lost["state"] == "lost"
    assert [end(each)[0]["state"] for each in others] == ["completed", "completed"]
    words = [line.split()[:2] for line in toy.journal()[1:]]
    assert [word for word, _ in words] == ["begin", "end", "begin", "end"]
    assert words[0][1] == words[1][1] != words[2][1] == words[3][1]


@pytest.mark.slow
def test_the_time_limit_does_not_include_waiting_for_a_turn(toy: Any, pass_hour: Callable[[str], None]) -> None:
    first = toy.start("run", toy.spec("first", framework={"gate": str(toy.gate)}), "--json")
    toy.wait_for_journal("begin")
    pass_hour("[ ! -e begun ]")  # over immediately if it counts before the job's turn, else never
    second = toy.start("run", toy.spec("second", workload={"time_limit": "1h"}), "--json")
    toy.wait(lambda: len(toy.records) == 2)
    [waiting] = [each.name for each in toy.records if each.name != toy.journal("begin")[0].split()[1]]
    toy.wait(lambda: (toy.work(waiting) / "started").exists())
    toy.gate.touch()
    assert [end(each)[0]["state"] for each in (first, second)] == ["completed", "completed"]


# cancel


def test_cancel_while_preparing_submits_nothing(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"task": "data", "task_gate": str(toy.task_gate)}), "--json")
    run_id = toy.wait_for_state("preparing")
    toy.wait_for_journal("task-begin")
    [cancelled] = toy.runs("cancel", run_id)
    assert cancelled["state"] == "cancelled"
    assert end(running) == [cancelled]
    assert not toy.work(run_id).exists()


@pytest.mark.slow
def test_cancel_while_queued_hurts_no_other_run_and_forgets_its_secret(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    first = toy.start("run", toy.spec("first", framework={"gate": str(toy.gate)}), "--json")
    toy.wait_for_journal("begin")
    second = toy.start("run", toy.spec("second", framework={"secrets": ["TOY_TOKEN"]}), "--json")
    toy.wait(lambda: len(toy.records) == 2)
    [waiting] = [each.name for each in toy.records if each.name != toy.journal("begin")[0].split()[1]]
    toy.wait(lambda: (toy.work(waiting) / "started").exists())
    [cancelled] = toy.runs("cancel", waiting)
    assert cancelled["state"] == "cancelled"
    assert end(second) == [cancelled]
    assert processes_of(toy.work(waiting)) == []
    assert not list(toy.work(waiting).glob(".*secrets*"))
    toy.gate.touch()
    assert end(first)[0]["state"] == "completed"
    assert len(toy.journal("begin")) == 1


def test_cancel_after_llmb_died_before_it_submitted_starts_nothing(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmb_toy.scheduler import Detached, Faulty

    import llmb

    late: list[Callable[[], object]] = []

    @llmb.hookimpl
    def die(self: Faulty, scripts: Any, host: Any) -> None:
        late.append(partial(Detached.submit, self, scripts, host))
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(Faulty, "submit", die)
        session = llmb.start(llmb.load(toy.spec(target={"scheduler": "faulty"})))
        with pytest.raises(KeyboardInterrupt):
            session.wait()
    [cancelled] = llmb.cancel(session.run_ids).wait()
    assert cancelled.state == "cancelled"
    [submit] = late
    submit()  # an orphaned bash comes late
    ended = toy.work(cancelled.run_id) / "ended"
    assert toy.wait(lambda: ended.exists() and ended.read_text()).split("\t")[1] == "cancelled"
    assert toy.journal() == []


# how runs end


def test_phases_run_in_order_and_only_measured_ones_give_metrics(toy: Any) -> None:
    run = toy.run(framework={"warm_up": True}, workload={"gpus": 2})
    assert run["state"] == "completed"
    order = [(line.split()[0], line.split()[2]) for line in toy.journal()]
    assert order[:2] == [("begin", "warm-up.0"), ("end", "warm-up.0")]
    assert sorted(order[2:]) == [("begin", "train.0"), ("begin", "train.1"), ("end", "train.0"), ("end", "train.1")]
    assert toy.steps_of(Path(run["directory"])) == [1, 2, 3, 4, 5]
    assert len((Path(run["directory"]) / "logs/warm-up.0.0.log").read_text().splitlines()) == 3


@pytest.mark.parametrize("written", ["none", "empty"])
def test_an_output_that_is_missing_or_empty_fails_its_phase(toy: Any, written: str) -> None:
    run = toy.run(framework={"output": True, "write_output": written})
    assert run["state"] == "failed"
    assert "phase train: its output" in run["failure"]["cause"]
    assert "missing or empty" in run["failure"]["cause"]


def test_a_complete_output_is_accepted(toy: Any) -> None:
    assert toy.run(framework={"output": True})["state"] == "completed"


def test_a_nan_is_a_failure_whatever_the_exit_code(toy: Any) -> None:
    run = toy.run(framework={"nan_step": 4})
    assert run["state"] == "failed"
    assert "NaN" in run["failure"]["cause"]


def test_the_exception_that_ended_a_process_is_the_cause(toy: Any) -> None:
    run = toy.run(framework={"end": "python import binascii; binascii.a2b_base64('a')", "end_step": 3})
    assert run["reason"] == "phase train, rank 0: exit code 1 (after 3 of 5 steps)"
    assert run["failure"]["cause"] == "a process failed with binascii.Error"
    assert run["failure"]["evidence"].startswith("binascii.Error: Invalid base64")


def test_the_exit_code_of_a_program_that_returns_minus_one_is_no_signal(toy: Any) -> None:
    run = toy.run(framework={"end": "python import sys; sys.exit(-1)", "end_step": 3})
    assert run["reason"] == "phase train, rank 0: exit code 255 (after 3 of 5 steps)"


def test_too_few_steps_are_a_failure_whatever_the_exit_code(toy: Any) -> None:
    run = toy.run(framework={"end": "stop", "end_step": 3})
    assert run["state"] == "failed"
    assert run["reason"] == "it ended without an error after 3 of 5 steps"


def test_the_time_limit_ends_a_run(toy: Any, pass_hour: Callable[[str], None]) -> None:
    pass_hour("grep -q 'step 2' logs/train.0.0.log")
    run = toy.run(framework={"gate": str(toy.gate), "gate_step": 2}, workload={"time_limit": "1h"})
    assert run["state"] == "timeout"
    assert "after 2 of 5 steps" in run["failure"]["cause"]


def test_a_run_that_hangs_after_its_last_step_has_completed(toy: Any, pass_hour: Callable[[str], None]) -> None:
    pass_hour("grep -q 'step 5' logs/train.0.0.log")
    run = toy.run(framework={"hang": True}, workload={"time_limit": "1h"})
    assert run["state"] == "completed"
    assert run["notes"] == ["after the last of 5 steps, the job hung until its time limit"]
    assert run["metrics"]["step_time_s"] == 0.5


def test_a_crash_after_the_last_step_is_a_note(toy: Any) -> None:
    done = toy.llmb("run", toy.spec(framework={"end": "exit 3"}))
    assert done.returncode == 0
    [run] = toy.runs("runs")
    assert (run["state"], run["failure"]) == ("completed", None)
    assert (run["metrics"]["step_time_s"], run["window_complete"]) == (0.5, True)
    [note] = run["notes"]
    assert note == "after the last of 5 steps, the job failed: phase train, rank 0: exit code 3"
    assert note in done.stdout
    assert note in toy.llmb("show", run["run_id"]).stdout


def test_a_run_without_trouble_has_no_notes(toy: Any) -> None:
    assert toy.run()["notes"] == []


def test_a_job_that_cannot_take_the_lock_fails_with_the_reason(toy: Any) -> None:
    (toy.folder / "file").touch()
    run = toy.run(target={"lock": str(toy.folder / "file/lock")})
    assert run["state"] == "failed"
    assert (
        f"cannot write the lock {toy.folder}/file/lock.queue on {platform.node()}; make it writable, or set `lock = "
        in run["failure"]["cause"]
    )


# shared tasks


def test_two_runs_and_two_processes_share_a_task(toy: Any) -> None:
    options = {"task": "data", "task_gate": str(toy.task_gate)}
    spec = toy.spec(framework=options, workload={"dtype": ["bf16", "fp8"]})
    both = [toy.start("run", spec, "--json") for _ in range(2)]
    toy.wait(lambda: len(toy.records) == 4)
    toy.wait_for_journal("task-begin")
    toy.task_gate.touch()
    assert {run["state"] for each in both for run in end(each)} == {"completed"}
    assert len(toy.journal("task-begin")) == 1
    assert len(toy.journal("begin")) == 4


@pytest.mark.parametrize("on", ["host", "scheduler"])
def test_a_task_that_fails_fails_every_run_that_needs_it_and_no_other(toy: Any, on: str) -> None:
    import llmb

    options = {"task": "data", "task_on": on, "task_end": "echo no such dataset >&2; echo; echo hint: look; exit 3"}
    results = llmb.run(llmb.load(toy.spec(framework=options, workload={"dtype": ["bf16", "fp8"]})))
    assert [run.state for run in results] == ["failed", "failed"]
    for run in results:
        assert run.failure is not None
        assert "toy data could not be created" in run.failure.cause
        assert "no such dataset (log: " in run.failure.cause
    assert len(toy.journal("task-begin")) == 1
    assert toy.run()["state"] == "completed"


def test_a_task_that_was_killed_is_repeated(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework={"task": "data", "task_gate": str(toy.task_gate)}), "--json")
    toy.wait_for_journal("task-begin")
    [folder] = (toy.home / "work/tasks").iterdir()
    os.kill(supervisor_of(folder), signal.SIGKILL)
    toy.wait_for_journal("task-begin", 2)
    toy.task_gate.touch()
    [run] = end(running)
    assert run["state"] == "completed"
    assert len(toy.journal("task-end")) == 1


def test_a_task_that_is_a_job_runs_before(toy: Any) -> None:
    run = toy.run(framework={"task": "data", "task_on": "scheduler"})
    assert run["state"] == "completed"
    assert [line.split()[0] for line in toy.journal()] == ["task-begin", "task-end", "begin", "end"]


# what crosses into the job


def test_each_rank_finds_its_place_in_its_environment(toy: Any) -> None:
    run = toy.run(framework={"dump": True}, workload={"gpus": 2})
    work = toy.work(run["run_id"])
    ports = set()
    for rank in "01":
        lines = (work / f"env.{rank}").read_text().split("\0")
        env = dict(line.split("=", 1) for line in lines if line)
        names = {"RANK": rank, "LOCAL_RANK": rank, "NODE_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        names |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": env["MASTER_PORT"]}
        assert {name: env[name] for name in names} == names
        assert {name: env[f"LLMB_{name}"] for name in names} == names
        assert env["LLMB_JOB_ID"] == run["run_id"]
        assert env["LLMB_RUN_DIR"] == str(work)
        assert env["LLMB_ATTEMPT"] == "0"
        ports.add(env["MASTER_PORT"])
    recorded = tomllib.loads((Path(run["directory"]) / "run.toml").read_text())["provenance"]["env"]
    assert recorded.items() >= {("RANK", "0"), ("LLMB_RUN_DIR", str(work))}  # that of the first of them
    assert len(ports) == 1
    assert ports.pop().isdigit()


def test_every_value_reaches_the_job_as_it_was_written(toy: Any) -> None:
    odd = ["$(touch pwned)", "`touch pwned`", 'it\'s "quoted"; touch pwned', "two\nlines\n", "${HOME}", "a\\", "*", ""]
    values = {f"ODD_{number}": value for number, value in enumerate(odd)}
    run = toy.run(env=values, framework={"dump": True})
    lines = (toy.work(run["run_id"]) / "env.0").read_text().split("\0")
    assert {f"{name}={value}" for name, value in values.items()} <= set(lines)
    assert not list(toy.folder.rglob("pwned"))


def test_every_path_reaches_the_job_as_it_was_written(toy: Any) -> None:
    odd = toy.folder / "a b'c\"d $(touch pwned) `touch pwned`;&"
    target = {"workdir": str(odd), "lock": str(odd / "the lock")}
    run = toy.run(target=target, framework={"task": "data", "journal": str(toy.journal_file), "dump": True})
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert (odd / "runs" / run["run_id"] / "env.0").exists()
    assert (odd / "the lock").exists()
    assert not list(toy.folder.rglob("pwned"))


@pytest.mark.parametrize("end_of_job", ["nothing", "exit 3"])
def test_a_secret_reaches_the_job_and_is_written_nowhere(
    toy: Any, monkeypatch: pytest.MonkeyPatch, end_of_job: str
) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    options = {"secrets": ["TOY_TOKEN"], "gate": str(toy.gate), "end": end_of_job}
    running = toy.start("run", toy.spec(framework=options), "--json")
    toy.wait_for_journal("begin")
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    toy.gate.touch()
    out, err = running.communicate(timeout=DEADLINE_S)
    [run] = json.loads(out)["runs"]
    expected = hashlib.sha256(TOKEN.encode()).hexdigest()
    assert expected in (toy.work(run["run_id"]) / "token.sha256").read_text()
    assert TOKEN not in out + err + commands
    files = [file for file in toy.folder.rglob("*") if file.is_file()]
    assert len(files) > 10
    assert [file for file in files if TOKEN.encode() in file.read_bytes()] == []


def test_a_secret_is_not_left_behind_when_what_was_submitted_is_submitted_again(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulate a kill after the start of the job, before it is recorded."""
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    run = toy.run(framework={"secrets": ["TOY_TOKEN"]})
    events = Path(run["directory"]) / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(lines[: 1 + next(n for n, line in enumerate(lines) if "submitting" in line)]))
    [again] = toy.runs("attach", run["run_id"])
    assert again["state"] == "completed"
    assert not list(toy.work(run["run_id"]).glob(".*secrets*"))
    assert len(toy.journal("begin")) == 1


def test_a_missing_secret_is_an_error_before_anything_changes(toy: Any) -> None:
    done = toy.llmb("run", toy.spec(framework={"secrets": ["TOY_TOKEN"]}))
    assert done.returncode == 2
    assert done.stderr == "llmb: TOY_TOKEN is not set, but the run needs it; export TOY_TOKEN before running llmb\n"
    assert toy.records == []


def test_attaching_without_the_secret_is_an_error(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    run_id = toy.record(framework={"secrets": ["TOY_TOKEN"]})
    monkeypatch.delenv("TOY_TOKEN")
    done = toy.llmb("attach")
    assert done.returncode == 2
    assert "TOY_TOKEN is not set" in done.stderr
    [cancelled] = toy.runs("cancel", run_id)
    assert cancelled["state"] == "cancelled"


def test_detaching_returns_when_nothing_is_left_to_submit(toy: Any) -> None:
    done = toy.llmb("run", toy.spec(framework={"task": "data", "gate": str(toy.gate)}), "--detach", "--json")
    assert done.returncode == 0, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert run["state"] in ("queued", "running")
    toy.gate.touch()
    [run] = toy.runs("attach")
    assert run["state"] == "completed"
    assert toy.runs("attach") == []
