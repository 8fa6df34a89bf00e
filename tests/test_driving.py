"""What becomes of runs when one of them, or the target for a while, cannot go on."""

from __future__ import annotations

import json
from typing import Any

import pytest

import llmb


def test_a_cancelled_run_is_not_submitted_though_the_target_could_not_be_asked_meanwhile(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llmb.engine.record import find_record
    from llmb.engine.site import Site

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
    session = llmb.resume([*first.run_ids, cancelled])
    session.drive(detach=True, wait=lambda _pause_s: None)
    assert session.results[1].state == "cancelled"
    assert not (toy.work(cancelled) / "started").exists()


def test_a_refused_run_hides_no_other_and_the_exit_status_tells_of_it(toy: Any) -> None:
    spec = toy.spec(workload={"dtype": ["bf16", "fp8"]}, target={"scheduler": "choosy", "grace_s": 1})
    done = toy.llmb("run", spec, "--json")
    assert done.returncode == 4
    assert "no FP8 after noon; come back in the morning" in done.stderr
    completed, refused = json.loads(done.stdout)["runs"]
    assert (completed["state"], completed["refused"], completed["metrics"]["step_time_s"]) == ("completed", False, 0.5)
    assert (refused["state"], refused["refused"], refused["reason"]) == ("failed", True, "no FP8 after noon")
