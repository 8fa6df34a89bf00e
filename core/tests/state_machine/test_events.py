"""The lines of ``events.jsonl``: what is recorded is read back, also by and from other versions of llmb."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from llmb.records.record import stamp
from llmb.state_machine.apply_events import replay
from llmb.state_machine.events import (
    RECORDED,
    AttemptStarted,
    CancelSent,
    Ended,
    Event,
    JobEnded,
    Note,
    Planned,
    Preparing,
    Progress,
    Queued,
    Running,
    Skipped,
    SubmissionUnanswered,
    Submitting,
    TargetBack,
    TargetLost,
    decode_event,
    encode_event,
)
from llmb.state_machine.units import State
from llmb.values.causes import Cause
from llmb.values.job_status import JobStatus
from llmb.values.run_states import END_STATES

STATUS = JobStatus(
    state="ended", job_id="7", cause="failed", exit_code=0, reason="rank 1: ünk\nown", remedy="ask", attempt=2
)
RECORDED_EVENTS = [
    Planned(),
    Preparing(task="image-4711"),
    Submitting(),
    SubmissionUnanswered(reason="no route to host"),
    Queued(),
    Queued(job_id="7", reason="Priority"),
    Running(),
    Running(job_id="7"),
    AttemptStarted(attempt=2),
    CancelSent(request=1795000000000000001),
    JobEnded(status=STATUS),
    JobEnded(status=JobStatus(state="pending", cause="impossible")),
    *(JobEnded(status=JobStatus(state="ended", cause=cause)) for cause in get_args(Cause)),
    Ended(state="completed", verdict="pass"),
    Ended(state="failed", reason="out of memory", cause="failed", remedy="use less"),
    *(Ended(state=state) for state in sorted(END_STATES)),
]


@pytest.mark.parametrize("event", RECORDED_EVENTS, ids=str)
def test_a_recorded_event_is_read_back(event: Event) -> None:
    event = stamp(event)
    line = encode_event(event)
    assert "\n" not in line
    assert decode_event(line, "") == event
    read = decode_event(f"{line}\n".encode(), "run7")
    assert read is not None
    assert (read.run_id, read.time) == ("run7", event.time)


def test_every_recorded_class_is_tested_and_live_ones_are_not_recorded() -> None:
    assert {type(event) for event in RECORDED_EVENTS} == set(RECORDED.values())
    live = {Progress, Skipped, TargetLost, TargetBack, Note}
    defined = {each.__name__ for each in Event.__subclasses__() if each.__module__ == Event.__module__}
    assert defined == {each.__name__ for each in (*RECORDED.values(), *live)}


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Planned(time=1.5), {"time": 1.5, "event": "planned", "state": "planned"}),
        (Queued(job_id="7", time=1.5), {"time": 1.5, "event": "queued", "state": "queued", "job_id": "7"}),
        (Ended(state="timeout", time=1.5), {"time": 1.5, "event": "ended", "state": "timeout"}),
        (AttemptStarted(attempt=1, time=1.5), {"time": 1.5, "event": "attempt_started", "attempt": 1}),
    ],
)
def test_a_line_names_its_event_and_the_state_that_follows(event: Event, line: object) -> None:
    """Programs that read records rely on these keys."""
    assert json.loads(encode_event(event)) == line


# records of other versions

OLD = [
    ('{"time": 1.5, "state": "planned"}', State()),
    ('{"time": 2, "state": "preparing", "task": "image-4711"}', State(stage="preparing", task="image-4711")),
    ('{"time": 3, "state": "submitting"}', State(stage="submitting", task="image-4711", may_be_submitted=True)),
    (
        '{"time": 4, "unanswered": "no route to host"}',
        State(stage="submitting", task="image-4711", may_be_submitted=True, reason="no route to host"),
    ),
    (
        '{"time": 5, "state": "queued", "job_id": "7"}',
        State(stage="queued", task="image-4711", may_be_submitted=True, submitted=True, job_id="7"),
    ),
    (
        '{"time": 6, "state": "running"}',
        State(stage="running", task="image-4711", may_be_submitted=True, submitted=True, job_id="7"),
    ),
    (
        '{"time": 7, "attempt": 1}',
        State(stage="running", task="image-4711", may_be_submitted=True, submitted=True, job_id="7", attempt=1),
    ),
    (
        '{"time": 8, "state": "completed", "verdict": "pass"}',
        State(
            stage="ended",
            task="image-4711",
            may_be_submitted=True,
            submitted=True,
            job_id="7",
            attempt=1,
            ending=Ended(time=8, state="completed", verdict="pass"),
        ),
    ),
]


def read(lines: list[str]) -> State:
    return replay(event for line in lines if (event := decode_event(line, "")))


@pytest.mark.parametrize("count", range(len(OLD) + 1))
def test_lines_without_names_of_events_give_the_same_state(count: int) -> None:
    assert read([line for line, _ in OLD[:count]]) == (OLD[count - 1][1] if count else State())


@pytest.mark.parametrize("state", sorted(END_STATES))
def test_a_run_that_ended_before_events_had_names_is_over(state: str) -> None:
    ended = read([json.dumps({"time": 1, "state": state, "reason": "so it was"})])
    assert (ended.stage, ended.run_state, ended.ending and ended.ending.reason) == ("ended", state, "so it was")


def test_fields_of_later_versions_are_ignored() -> None:
    line = '{"time": 1, "event": "running", "state": "running", "job_id": "7", "node": "n1", "run_id": "other"}'
    assert decode_event(line, "run7") == Running(run_id="run7", time=1, job_id="7")
    line = '{"time": 1, "event": "job_ended", "status": {"state": "ended", "cause": "failed", "node": "n1"}}'
    assert decode_event(line, "") == JobEnded(time=1, status=JobStatus(state="ended", cause="failed"))


DROPPED = [
    "",
    "{",
    '{"time": 1, "state": "comple',
    '{"time": 1, "state": "failed"}tail',
    "\x00\x00",
    "null",
    "[1]",
    '"planned"',
    "7",
    "{}",
    '{"time": 1}',
    '{"time": 1, "state": "paused"}',
    '{"time": 1, "state": null}',
    '{"time": 1, "event": "paused", "state": "running"}',
    '{"time": 1, "event": null}',
    '{"time": 1, "event": ["queued"]}',
    '{"time": 1, "event": "ended"}',
    '{"time": 1, "event": "attempt_started"}',
    '{"time": 1, "event": "job_ended"}',
    '{"time": 1, "event": "job_ended", "status": null}',
    '{"time": 1, "event": "job_ended", "status": {}}',
    '{"time": 1, "event": "job_ended", "status": {"state": "exploded"}}',
]


@pytest.mark.parametrize("line", DROPPED)
def test_a_line_that_is_no_event_is_dropped(line: str) -> None:
    assert decode_event(line, "") is None
    assert decode_event(line.encode(), "") is None
    before = [line for line, _ in OLD[:6]]
    assert read([*before, line]) == read(before)


def test_bytes_that_are_no_text_are_dropped() -> None:
    assert decode_event(b'{"state": "\xff"}', "") is None
