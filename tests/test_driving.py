"""What becomes of runs when one of them, or the target for a while, cannot go on."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import llmb


def test_a_cancelled_run_is_not_submitted_though_the_target_could_not_be_asked_meanwhile(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb.drive.record import find_record
    from llmb.drive.site import Site

    first = llmb.start(llmb.load(toy.spec("first", framework={"gate": str(toy.gate)})))
    first.drive(detach=True)
    [cancelled] = llmb.start(llmb.load(toy.spec("second"))).run_ids
    find_record(cancelled).add_event(state="submitting")  # and then llmb was killed
    find_record(cancelled).request_cancel()
    faults, poll = [llmb.TargetError("no route to host")], Site.poll

    def answer_the_second_time(*arguments: Any) -> Any:
        if faults:
            raise faults.pop()
        return poll(*arguments)

    monkeypatch.setattr(Site, "poll", answer_the_second_time)
    session = llmb.attach([*first.run_ids, cancelled])
    session.drive(detach=True, wait=lambda _pause_s: None)
    assert session.results[1].state == "cancelled"
    assert not (toy.work(cancelled) / "started").exists()


def test_what_is_said_of_a_run_that_its_scheduler_never_answered_for_is_true_also_of_a_cancel(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb.drive.site import Site

    def refuse(_site: Site, given: list[Any]) -> dict[str, Any]:
        if given:
            raise llmb.TargetError("no configuration source")
        return {}

    session = llmb.start(llmb.load(toy.spec()))
    [run_id] = session.run_ids
    with monkeypatch.context() as away:
        for name in ("submit", "poll", "cancel"):
            away.setattr(Site, name, refuse)
        with pytest.raises(
            llmb.TargetError, match=f"attach {run_id}` goes on, and `llmb cancel {run_id}` ends what is"
        ):
            session.drive()
        with pytest.raises(
            llmb.TargetError, match=f"; nothing is cancelled yet: .*`llmb cancel {run_id}` ends what is"
        ):
            llmb.cancel([run_id]).drive()
    run = llmb.find_run(run_id)
    assert (run.state, run.reason) == ("submitting", "no configuration source")
    session = llmb.cancel([run_id])
    session.drive()
    assert session.results[0].state == "cancelled"


def test_whoever_asks_again_for_the_end_of_a_run_need_not_wait_for_its_grace(toy: Any) -> None:
    from llmb.drive.record import find_record

    spec = toy.spec(framework={"gate": str(toy.gate), "ignore_term": True}, target={"grace_s": 1000})
    session = llmb.start(llmb.load(spec))
    end = time.monotonic() + 30

    def ask_again(_pause_s: float) -> None:
        assert time.monotonic() < end
        toy.wait_for_journal("begin")
        find_record(session.run_ids[0]).request_cancel()

    session.drive(wait=ask_again)
    assert session.results[0].state == "cancelled"


def test_a_refused_run_hides_no_other_and_the_exit_status_tells_of_it(toy: Any) -> None:
    spec = toy.spec(workload={"dtype": ["bf16", "fp8"]}, target={"scheduler": "choosy"})
    done = toy.llmb("run", spec, "--json")
    assert done.returncode == 4
    assert "no FP8 after noon; come back in the morning" in done.stderr
    completed, refused = json.loads(done.stdout)["runs"]
    assert (completed["state"], completed["refused"], completed["metrics"]["step_time_s"]) == ("completed", False, 0.5)
    assert (refused["state"], refused["refused"], refused["reason"]) == ("failed", True, "no FP8 after noon")


def test_a_run_whose_task_is_refused_is_refused_too(toy: Any) -> None:
    target = {"scheduler": "choosy"}
    run = toy.run(framework={"task": "data", "task_on": "scheduler"}, target=target)
    assert (run["state"], run["refused"]) == ("failed", True)
    assert run["reason"] == "toy data could not be made: no FP8 after noon"
    assert run["failure"]["remedy"] == "come back in the morning"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"secrets": ["TOY_TOKEN"]}, "job"),
        ({"task": "data", "task_secrets": ["TOY_TOKEN"]}, "toy data"),
    ],
)
def test_a_run_that_lacks_its_secret_is_left_as_it_is_and_the_others_go_on(
    toy: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], what: str
) -> None:
    monkeypatch.setenv("TOY_TOKEN", "very-secret")
    [waiting] = llmb.start(llmb.load(toy.spec("waiting", framework=options))).run_ids
    [other] = llmb.start(llmb.load(toy.spec("other"))).run_ids
    monkeypatch.delenv("TOY_TOKEN")
    session = llmb.attach([waiting, other])
    told = f"{waiting}: TOY_TOKEN is not set, and the {what} needs it; export it .* `llmb attach {waiting}` goes on$"
    with pytest.raises(llmb.SpecError, match=told):
        session.drive()
    assert [result.ended for result in session.results] == [False, True]
    monkeypatch.setenv("TOY_TOKEN", "very-secret")
    session.drive()
    assert [result.state for result in session.results] == ["completed", "completed"]


def test_a_job_that_is_there_is_followed_without_its_secret(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmb.drive.record import RunRecord

    monkeypatch.setenv("TOY_TOKEN", "very-secret")
    with monkeypatch.context() as killed:  # after the job was submitted, and before that was recorded
        enter = RunRecord.add_event
        killed.setattr(RunRecord, "add_event", lambda *a, **k: enter(*a, **k) if k.get("state") != "queued" else 1 / 0)
        session = llmb.start(llmb.load(toy.spec(framework={"secrets": ["TOY_TOKEN"]})))
        with pytest.raises(ZeroDivisionError):
            session.drive()
    monkeypatch.delenv("TOY_TOKEN")
    session = llmb.attach(session.run_ids)
    session.drive()
    assert [result.state for result in session.results] == ["completed"]


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The hosts whose connections were ended."""
    from llmb.hosts.open_hosts import Hosts

    found: list[object] = []
    monkeypatch.setattr(Hosts, "close", lambda hosts: found.append(hosts))
    return found


def test_no_connection_stays_open_where_a_session_fails_or_is_never_driven(toy: Any, closed: list[object]) -> None:
    with pytest.raises(llmb.SpecError, match="TOY_TOKEN is not set"):
        llmb.start(llmb.load(toy.spec(framework={"task": "data", "task_secrets": ["TOY_TOKEN"]})))
    assert len(closed) == 1
    with llmb.start(llmb.load(toy.spec())) as session:
        assert len(closed) == 1
    assert len(closed) == 2
    [record] = toy.records
    (record / "cancel").symlink_to("nowhere/cancel")  # it cannot be written
    with pytest.raises(llmb.RecordError):
        llmb.cancel(session.run_ids)
    assert len(closed) == 2, "nothing was opened"


def test_a_run_whose_record_cannot_be_written_is_left_and_the_others_go_on(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb.drive.record import RunRecord

    session = llmb.start(llmb.load(toy.spec(workload={"repeats": 2})))
    append = RunRecord.append_log

    def refuse(record: RunRecord, *arguments: Any) -> None:
        if record.run_id == session.run_ids[0]:
            raise llmb.RecordError(f"the record of {record.run_id} cannot be written")
        append(record, *arguments)

    with monkeypatch.context() as full:
        full.setattr(RunRecord, "append_log", refuse)
        with pytest.raises(llmb.RecordError, match=f"{session.run_ids[0]} cannot be written"):
            session.drive()
    assert [result.ended for result in session.results] == [False, True]
    llmb.attach(session.run_ids).drive()
    assert [result.state for result in session.results] == ["completed", "completed"]


def test_of_several_named_runs_one_that_cannot_be_taken_up_holds_up_no_other(toy: Any) -> None:
    gone, going = (llmb.start(llmb.load(toy.spec())).run_ids[0] for _ in range(2))
    spec = next(record for record in toy.records if record.name == gone) / "run.toml"
    spec.write_text(spec.read_text().replace("toy/tiny", "gone/tiny"))
    with pytest.raises(llmb.LlmbError, match="gone"):
        llmb.attach([gone])
    session = llmb.cancel([gone, going])
    with pytest.raises(llmb.LlmbError, match="gone"):
        session.drive()
    assert [(result.run_id, result.state) for result in session.results] == [(going, "cancelled")]
    assert (spec.parent / "cancel").exists(), "whoever can drive it will end it"
    spec.write_text(spec.read_text().replace("gone/tiny", "toy/tiny"))
    session = llmb.attach([gone])
    session.drive()
    assert [result.state for result in session.results] == ["cancelled"]


def test_what_is_known_of_the_runs_is_printed_also_where_one_cannot_go_on(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_TOKEN", "very-secret")
    llmb.start(llmb.load(toy.spec("waiting", framework={"secrets": ["TOY_TOKEN"]})))
    llmb.start(llmb.load(toy.spec("other")))
    monkeypatch.delenv("TOY_TOKEN")
    done = toy.llmb("attach", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 2
    assert {run["state"] for run in document["runs"]} == {"submitting", "completed"}
    assert "TOY_TOKEN is not set" in document["errors"][0]["message"]


def test_what_an_observer_raises_ends_the_drive_before_anything_else_is_done(toy: Any) -> None:
    class Watching:
        def progress(self, progress: llmb.Progress) -> None:
            raise ZeroDivisionError(progress.run_id)

        message = print

    folders = [str(toy.folder / name) for name in ("first", "second")]
    session = llmb.start(llmb.load(toy.spec(sweep={"target.workdir": folders})), observer=Watching())
    with pytest.raises(ZeroDivisionError, match=rf"^{session.run_ids[0]}$"):
        session.drive()
    assert [result.state for result in session.results] == ["submitting", "planned"]


@pytest.mark.parametrize("error", [llmb.SpecError("no jobs on Sundays"), KeyError("a bug")], ids=["known", "bug"])
def test_a_site_that_takes_no_job_is_told_at_once_and_the_runs_on_others_go_on(
    toy: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    from llmb.drive.site import Site

    told: list[tuple[bool, str]] = []
    folders = [str(toy.folder / name) for name in ("first", "second")]
    submit = Site.submit

    def refuse(site: Site, scripts: Any) -> Any:
        if scripts and site.workdir == folders[0]:
            raise error
        return submit(site, scripts)

    class Watching:
        def progress(self, progress: llmb.Progress) -> None: ...

        def message(self, text: str) -> None:
            told.append((session.results[1].ended, text))

    monkeypatch.setattr(Site, "submit", refuse)
    session = llmb.start(llmb.load(toy.spec(sweep={"target.workdir": folders})), observer=Watching())
    with pytest.raises(type(error), match=str(error.args[0])):
        session.drive()
    assert [result.state for result in session.results] == ["submitting", "completed"]
    [(ended, text)] = told
    assert not ended
    assert str(error.args[0]) in text
    assert text.endswith("; other runs go on")
