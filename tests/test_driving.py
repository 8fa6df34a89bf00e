"""The runs of a session, if one of them fails or the target does not respond for a while."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from parts.deadline import DEADLINE_S

import llmb
from llmb.drive.finalize import job_directories

FAULTY = {"scheduler": "faulty"}


def test_a_cancelled_run_is_not_submitted_although_the_target_did_not_respond_meanwhile(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb_toy.scheduler import Faulty

    first = llmb.start(llmb.load(toy.spec("first", framework={"gate": str(toy.gate)}, target=FAULTY)))
    first.wait(until="submitted")
    cancelled = toy.record("second", target=FAULTY)
    toy.append_event(cancelled, state="submitting")  # and then llmb was killed
    llmb.cancel([cancelled]).close()
    errors = [llmb.TargetError("no route to host")]

    def fail_the_first_time(_units: Any) -> None:
        if errors:
            raise errors.pop()

    monkeypatch.setitem(Faulty.errors, "poll", fail_the_first_time)
    session = llmb.attach([*first.run_ids, cancelled])
    session.wait(until="submitted", sleep=lambda _pause_s: None)
    assert session.results[1].state == "cancelled"
    assert not (toy.work(cancelled) / "started").exists()


def test_the_error_of_a_run_whose_scheduler_never_responded_is_true_also_of_a_cancel(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb_toy.scheduler import Faulty

    def refuse(_units: Any) -> None:
        raise llmb.TargetError("no configuration source")

    run_id = toy.record(target=FAULTY)
    toy.append_event(run_id, state="submitting")  # and then llmb was killed
    with monkeypatch.context() as away:
        for name in ("submit", "poll", "cancel"):
            away.setitem(Faulty.errors, name, refuse)
        with pytest.raises(llmb.TargetError, match=f"`llmb attach {run_id}` .*`llmb cancel {run_id}`"):
            llmb.attach([run_id]).wait()
        with pytest.raises(
            llmb.TargetError, match=f"; nothing is cancelled yet: .*`llmb cancel {run_id}`; .*`llmb attach`"
        ):
            llmb.cancel([run_id]).wait()
    run = llmb.find_run(run_id)
    assert (run.state, run.reason) == ("submitting", "no configuration source")
    [attached] = llmb.attach([run_id]).wait()
    assert attached.state == "cancelled"


@pytest.mark.parametrize("answered", [True, False], ids=["refused", "perhaps submitted"])
def test_a_run_that_was_certainly_not_submitted_fails_and_is_never_submitted(
    answered: bool, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb_toy.scheduler import Faulty

    def refuse(_scripts: Any) -> None:
        raise llmb.TargetError("disk quota exceeded")

    def lose_the_answer(_scripts: Any) -> None:
        raise llmb.UnknownOutcomeError("the connection was lost")

    session = llmb.start(llmb.load(toy.spec(target=FAULTY)))
    with monkeypatch.context() as refusing:
        refusing.setitem(Faulty.errors, "submit", refuse if answered else lose_the_answer)
        with suppress(llmb.TargetError), session:
            for event in session:
                if isinstance(event, llmb.TargetLost):
                    break  # an uncertain submission is repeated until the target answers
    [run] = session.results
    assert run.state == ("failed" if answered else "submitting")
    assert run.reason == ("disk quota exceeded" if answered else "")
    assert [each.state for each in llmb.attach().wait()] == ([] if answered else ["completed"])
    assert len(toy.journal("begin")) == (0 if answered else 1)


@pytest.mark.parametrize(
    ("message", "origin"),
    [("no FP8 after noon", "user"), ("printf: write error: No space left on device", "infrastructure")],
)
def test_the_origin_of_a_rejection_is_that_of_its_known_cause(
    message: str, origin: str, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb_toy.scheduler import Faulty

    def refuse(_scripts: Any) -> None:
        raise llmb.TargetError(message)

    monkeypatch.setitem(Faulty.errors, "submit", refuse)
    session = llmb.start(llmb.load(toy.spec(target=FAULTY)))
    with pytest.raises(llmb.TargetError, match=message):
        session.wait()
    [run] = session.results
    assert run.failure
    assert (run.failure.cause, run.failure.origin) == (message, origin)


def test_a_check_of_the_target_is_repeated_even_if_the_loss_of_the_connection_was_noticed_late(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, errors = [0.0], [llmb.UnknownOutcomeError("the server stopped responding")]

    def check(*_arguments: Any, **_options: Any) -> None:
        if errors:
            now_s[0] += 60
            raise errors.pop()

    monkeypatch.setattr("llmb.drive.start.time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=lambda _: None))
    monkeypatch.setattr("llmb.drive.start.check_work_directory", check)
    with llmb.start(llmb.load(toy.spec())) as session:
        assert [result.state for result in session.wait()] == ["completed"]


def test_a_run_waits_for_an_attach_if_another_process_prevented_its_submission(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb_toy.scheduler import Faulty

    def refuse(_scripts: Any) -> None:
        raise llmb.BusyError("another llmb has been submitting for 2 minutes")

    session = llmb.start(llmb.load(toy.spec(target=FAULTY)))
    with monkeypatch.context() as refusing:
        refusing.setitem(Faulty.errors, "submit", refuse)
        with pytest.raises(llmb.BusyError, match=f"for 2 minutes; fix this, .*`llmb attach {session.run_ids[0]}`"):
            session.wait()
    assert [each.state for each in llmb.attach().wait()] == ["completed"]


def test_a_directory_that_disappears_is_the_reason_and_not_the_framework(toy: Any) -> None:
    framework = {"gate": str(toy.gate), "gate_step": 2, "end": "echo Traceback: ValueError; exit 1"}
    with llmb.start(llmb.load(toy.spec(framework=framework))) as session:
        [run_id] = session.run_ids
        for event in session:
            if isinstance(event, llmb.Progress) and event.step == 2:
                shutil.rmtree(toy.work(run_id), ignore_errors=True)
        [run] = session.results
    assert (run.state, run.reason) == ("failed", f"its directory {toy.work(run_id)} disappeared")
    assert run.failure
    assert run.failure.cause == run.reason
    assert "target.workdir" in run.failure.remedy


def test_logs_that_are_deleted_before_llmb_reads_them_are_the_reason(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job exits with 0. Its logs are checked even if it has many other files."""
    monkeypatch.setattr(job_directories, "MAX_FILES", 1)
    session = llmb.start(llmb.load(toy.spec(framework={"gate": str(toy.gate), "gate_step": 2})))
    [submitted] = session.wait(until="submitted")
    toy.wait_for_journal("begin")
    directory = toy.work(submitted.run_id)
    toy.wait((directory / "logs/train.0.0.log").exists)
    shutil.rmtree(directory / "logs")
    toy.gate.touch()
    [run] = llmb.attach([submitted.run_id]).wait()
    assert run.state == "failed"
    assert run.reason.startswith(f"files of its directory {directory} were deleted during the run, such as logs/train")


def test_files_that_are_deleted_during_a_run_are_the_reason(toy: Any) -> None:
    """The directory itself stays, as after `find -type f -delete`."""
    framework = {"gate": str(toy.gate), "gate_step": 2, "end": "echo Traceback: ValueError; exit 1"}
    with llmb.start(llmb.load(toy.spec(framework=framework))) as session:
        [run_id] = session.run_ids
        for event in session:
            if isinstance(event, llmb.Progress) and event.step == 2 and not toy.gate.exists():
                for file in [each for each in toy.work(run_id).rglob("*") if each.is_file()]:
                    file.unlink()
                toy.gate.touch()
        [run] = session.results
    assert toy.work(run_id).is_dir()
    assert run.state == "failed"
    assert run.reason.startswith(f"files of its directory {toy.work(run_id)} were deleted during the run, such as ")
    assert run.failure
    assert run.failure.cause == run.reason
    assert "target.workdir" in run.failure.remedy


def test_a_locale_that_this_machine_lacks_is_not_the_reason(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bash warns of such a locale on standard error."""
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    [run] = llmb.start(llmb.load(toy.spec(framework={"end_step": 1, "end": "exit 1"}))).wait()
    assert (run.state, "nothing can be written" in run.reason) == ("failed", False)


def test_a_second_cancel_does_not_wait_for_the_grace_of_the_first(toy: Any) -> None:
    spec = toy.spec(framework={"gate": str(toy.gate), "ignore_term": True}, target={"grace_s": 1000})
    session = llmb.start(llmb.load(spec))
    end = time.monotonic() + DEADLINE_S

    def cancel_again(_pause_s: float) -> None:
        assert time.monotonic() < end
        toy.wait_for_journal("begin")
        llmb.cancel(session.run_ids).close()

    session.wait(sleep=cancel_again)
    assert session.results[0].state == "cancelled"


def test_a_rejected_run_hides_no_other_and_sets_the_exit_code(toy: Any) -> None:
    spec = toy.spec(workload={"dtype": ["bf16", "fp8"]}, target={"scheduler": "choosy"})
    done = toy.llmb("run", spec, "--json")
    assert done.returncode == 4
    assert "no FP8 after noon; come back in the morning" in done.stderr
    completed, refused = json.loads(done.stdout)["runs"]
    assert (completed["state"], completed["refused"], completed["metrics"]["step_time_s"]) == ("completed", False, 0.5)
    assert (refused["state"], refused["refused"], refused["reason"]) == ("failed", True, "no FP8 after noon")


def test_a_run_whose_task_is_rejected_is_rejected_too(toy: Any) -> None:
    target = {"scheduler": "choosy"}
    run = toy.run(framework={"task": "data", "task_on": "scheduler"}, target=target)
    assert (run["state"], run["refused"]) == ("failed", True)
    assert run["reason"].startswith("toy data ")
    assert run["reason"].endswith(": no FP8 after noon")
    assert run["failure"]["remedy"] == "come back in the morning"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"secrets": ["TOY_TOKEN"]}, "job"),
        ({"task": "data", "task_secrets": ["TOY_TOKEN"]}, "toy data"),
    ],
)
def test_a_run_without_its_secret_is_skipped_and_the_others_continue(
    toy: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], what: str
) -> None:
    monkeypatch.setenv("TOY_TOKEN", "very-secret")
    waiting, other = toy.record("waiting", framework=options), toy.record("other")
    monkeypatch.delenv("TOY_TOKEN")
    session = llmb.attach([waiting, other])
    with pytest.raises(
        llmb.SpecError, match=f"{waiting}: TOY_TOKEN is not set, .* the {what} .*`llmb attach {waiting}`"
    ):
        session.wait()
    assert [result.ended for result in session.results] == [False, True]
    monkeypatch.setenv("TOY_TOKEN", "very-secret")
    session.wait()
    assert [result.state for result in session.results] == ["completed", "completed"]


def test_a_job_that_exists_is_followed_without_its_secret(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_TOKEN", "very-secret")
    options = {"secrets": ["TOY_TOKEN"], "gate": str(toy.gate)}
    first = llmb.start(llmb.load(toy.spec(framework=options)))
    first.wait(until="submitted")
    [run_id] = first.run_ids
    toy.forget_events(run_id, after="submitting")  # llmb was killed before it recorded that the job was submitted
    toy.gate.touch()
    monkeypatch.delenv("TOY_TOKEN")
    assert [result.state for result in llmb.attach([run_id]).wait()] == ["completed"]


def test_a_run_whose_record_cannot_be_written_is_skipped_and_the_others_continue(toy: Any) -> None:
    damaged, other = toy.record("damaged"), toy.record("other")
    session = llmb.attach([damaged, other])
    copy = toy.home / "runs" / damaged / "logs/train.0.0.log"
    copy.parent.mkdir(exist_ok=True)
    copy.symlink_to("nowhere/train.0.0.log")  # it cannot be written
    with pytest.raises(llmb.RecordError, match=f"record .*{damaged}.*`llmb attach {damaged}`"):
        session.wait()
    assert [result.ended for result in session.results] == [False, True]
    copy.unlink()
    assert [result.state for result in llmb.attach([damaged, other]).wait()] == ["completed", "completed"]


def test_a_named_run_that_cannot_be_loaded_delays_no_other(toy: Any) -> None:
    gone, going = toy.record(), toy.record()
    spec = next(record for record in toy.records if record.name == gone) / "run.toml"
    spec.write_text(spec.read_text().replace("toy/tiny", "gone/tiny"))
    with pytest.raises(llmb.LlmbError, match="gone"):
        llmb.attach([gone])
    session = llmb.cancel([gone, going])
    with pytest.raises(llmb.LlmbError, match="gone"):
        session.wait()
    assert [(result.run_id, result.state) for result in session.results] == [(going, "cancelled")]
    assert (spec.parent / "cancel").exists(), "whoever can drive it will end it"
    spec.write_text(spec.read_text().replace("gone/tiny", "toy/tiny"))
    assert [result.state for result in llmb.attach([gone]).wait()] == ["cancelled"]


def test_the_known_runs_are_printed_even_if_one_cannot_continue(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_TOKEN", "very-secret")
    toy.record("waiting", framework={"secrets": ["TOY_TOKEN"]})
    toy.record("other")
    monkeypatch.delenv("TOY_TOKEN")
    done = toy.llmb("attach", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 2
    assert {run["state"] for run in document["runs"]} == {"submitting", "completed"}
    assert "TOY_TOKEN is not set" in document["errors"][0]["message"]


@pytest.mark.parametrize("error", [llmb.SpecError("no jobs on Sundays"), KeyError("a bug")], ids=["known", "bug"])
def test_a_target_that_takes_no_job_is_reported_immediately_and_the_runs_on_others_continue(
    toy: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    from llmb_toy.scheduler import Faulty

    folders = [str(toy.folder / name) for name in ("first", "second")]
    notes: list[tuple[bool, str]] = []

    def refuse(scripts: Any) -> None:
        if scripts and scripts[0].directory.startswith(folders[0]):
            raise error

    def drive(session: llmb.Session) -> None:
        notes.extend((session.results[1].ended, event.text) for event in session if isinstance(event, llmb.Note))

    monkeypatch.setitem(Faulty.errors, "submit", refuse)
    session = llmb.start(llmb.load(toy.spec(target=FAULTY, sweep={"target.workdir": folders})))
    with pytest.raises((llmb.LlmbError, KeyError), match=str(error.args[0])):
        drive(session)
    assert [result.state for result in session.results] == ["submitting", "completed"]
    [(ended, text)] = notes
    assert not ended
    assert str(error.args[0]) in text
    assert "; other runs " in text


def test_a_plugin_whose_parser_fails_at_the_start_records_nothing(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmb_toy.scheduler import Faulty

    def fail(_runs: Any) -> None:
        raise ValueError("no parser today")

    monkeypatch.setitem(Faulty.errors, "parse_log", fail)
    with pytest.raises(llmb.PluginError, match="no parser today"):
        llmb.start(llmb.load(toy.spec(target=FAULTY)))
    assert llmb.list_runs() == []


def test_the_last_event_of_a_failed_run_explains_the_failure(toy: Any) -> None:
    with llmb.start(llmb.load(toy.spec(framework={"end": "exit 3", "end_step": 3}))) as session:
        *_, last = [event for event in session if isinstance(event, llmb.Ended)]
    [run] = session.results
    assert (last.state, last.cause, last.reason) == ("failed", "failed", run.reason)
    assert run.failure
    assert last.remedy == run.failure.remedy


def test_the_logs_of_a_job_that_is_over_are_copied_before_the_run_ends(toy: Any) -> None:
    with llmb.start(llmb.load(toy.spec())) as session:
        events = [event for event in session if isinstance(event, llmb.Progress | llmb.JobEnded | llmb.Ended)]
    job_ended, copying, ended = [
        events.index(event)
        for event in events
        if isinstance(event, llmb.JobEnded | llmb.Ended) or event.detail == "copying logs"
    ]
    assert job_ended < copying < ended
