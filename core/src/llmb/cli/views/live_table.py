"""The table of runs that the live view shows, and how each event changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs
from rich.text import Text

import llmb
from llmb.cli.views.numbers import format_clock
from llmb.cli.views.sweep import shorten_id
from llmb.cli.views.tables import GAP
from llmb.cli.views.verdicts import STYLES as VERDICT_STYLES

STATE_STYLES = {"completed": "green", "failed": "red", "timeout": "red", "lost": "red", "cancelled": "yellow"}

SHORTEST_ID = 16
"""The least number of characters of a run id on a narrow terminal."""

DETAIL_WIDTH = 24
"""Characters of the last column for which ids are shortened. A longer detail is cut."""

IMPORTANCE = ("running", "submitting", "preparing", "failed", "timeout", "lost", "cancelled", "completed", "queued")
"""States in the order in which runs get a line if the terminal is too low for all. Others come last."""


@attrs.frozen(kw_only=True)
class RunRow:
    """One line of the live view. ``state`` is empty as long as it is unknown."""

    run_id: str
    state: str = ""
    phase: str = ""
    step: int | None = None
    steps: int | None = None
    step_time_s: float | None = None
    mfu: float | None = None
    left_s: float | None = None
    verdict: str = ""
    detail: str = ""


ROW_FIELDS = frozenset(field.name for field in attrs.fields(RunRow))


def update_row(row: RunRow, event: llmb.Event, result: llmb.RunResult | None) -> RunRow:
    """Return the row after an event. ``result`` is that of a run that ended, if its record can be read."""
    match event:
        case llmb.Progress(state=state) if state not in llmb.END_STATES:
            return RunRow(**attrs.asdict(event, filter=lambda field, _value: field.name in ROW_FIELDS))
        case llmb.Ended():
            return _ended_row(row, event, result)
        case llmb.Preparing():
            return attrs.evolve(row, state="preparing", detail=event.kind)
        case llmb.Submitting():
            return attrs.evolve(row, state="submitting", detail="")
        case llmb.Skipped():
            return attrs.evolve(row, state="skipped", detail=event.reason.removeprefix(f"{row.run_id}: "))
    return row


def _ended_row(row: RunRow, event: llmb.Ended, result: llmb.RunResult | None) -> RunRow:
    metrics = result.metrics if result else None
    return attrs.evolve(
        row,
        state=event.state,
        step=(result.steps_done or None) if result else row.step,
        step_time_s=metrics.step_time_s if metrics else None,
        mfu=metrics.mfu if metrics else None,
        left_s=None,
        verdict=event.verdict or "",
        detail="" if event.state == "completed" else event.reason,
    )


def table_of_runs(rows: Sequence[RunRow], activity: str, width: int, height: int) -> list[Text]:
    """Return the lines of the live view: titles, one line per run, and how many runs are in each state.

    If there are more runs than lines, the most important ones are shown. ``activity`` is the last line, if any.
    """
    below = [Text(_summary(rows), "dim")] if len(rows) > 1 else []
    below += [Text(f"{llmb.printable_line(activity)} ...", "dim")] if activity else []
    room = max(1, height - 1 - len(below))
    shown = _most_important(rows, room) if len(rows) > room else rows
    if len(shown) < len(rows):
        below[0].append(f"; {len(shown)} of them shown")
    return ([*_lines(shown, width)] if rows else []) + below


def _most_important(rows: Sequence[RunRow], count: int) -> list[RunRow]:
    rank = {state: number for number, state in enumerate(IMPORTANCE)}
    order = sorted(range(len(rows)), key=lambda at: rank.get(rows[at].state, len(rank)))
    return [rows[at] for at in sorted(order[:count])]


def _lines(rows: Sequence[RunRow], width: int) -> Iterable[Text]:
    """Yield the titles and a line for each row. Columns that are empty in every row are left out."""
    cells = [_cells(row) for row in rows]
    widths = {
        title: max(least, len(title), *(len(each[title].plain) for each in cells)) for title, least in TITLES.items()
    }
    titles = [title for title in TITLES if title in KEPT or any(each[title].plain for each in cells)]
    for title in DROPPED:
        if _room_for_ids(titles, widths, width) >= SHORTEST_ID:
            break
        titles = [each for each in titles if each != title]
    room = max(_room_for_ids(titles, widths, width), SHORTEST_ID)
    widths["run"] = min(widths["run"], room)
    yield _line({title: Text(title, "bold") for title in TITLES}, titles, widths)
    room_for_detail = width - sum(widths[title] + len(GAP) for title in titles if title != DETAIL)
    for row, each in zip(rows, cells, strict=True):
        if row.state == "preparing":
            each[DETAIL] = Text(_shorten_task(each[DETAIL].plain, room_for_detail))
        each["run"] = Text(shorten_id(row.run_id, room))
        yield _line(each, titles, widths)


def _shorten_task(detail: str, room: int) -> str:
    """Return the name of a task and its last output. If both do not fit, shorten a long name to half of the room."""
    name, colon, last_output = detail.partition(": ")
    kept = max(room // 2, room - len(colon + last_output))
    return f"{name[: kept - 1]}…{colon}{last_output}" if colon and len(name) > kept else detail


def _room_for_ids(titles: Collection[str], widths: Mapping[str, int], width: int) -> int:
    """Return how many characters these columns leave for the ids of runs on a terminal of this width."""
    least = {**widths, DETAIL: min(widths[DETAIL], DETAIL_WIDTH)}
    return width - sum(least[title] + len(GAP) for title in titles if title != "run")


DETAIL = ""
TITLES = {"run": 0, "state": 10, "step": 0, "s/step": 6, "MFU %": 5, "left": 5, "verdict": 9, DETAIL: 0}
"""The columns with their least width, so that they do not move as values change."""

KEPT = ("run", "state")
DROPPED = ("MFU %", "left", "s/step", "step")
"""Columns that a narrow terminal leaves out, in this order."""

ON_THE_RIGHT = ("step", "s/step", "MFU %", "left")


def _cells(row: RunRow) -> dict[str, Text]:
    state = _one_line(row.phase) or row.state if row.state == "running" else row.state
    step = "" if row.step is None else f"{row.step} of {row.steps}" if row.steps else str(row.step)
    return {
        "run": Text(row.run_id),
        "state": Text(state, STATE_STYLES.get(row.state, "")),
        "step": Text(step.rjust(len(f"{row.steps} of {row.steps}")) if step and row.steps else step),
        "s/step": Text("" if row.step_time_s is None else f"{row.step_time_s:.4g}"),
        "MFU %": Text("" if row.mfu is None else f"{100 * row.mfu:.1f}" if row.mfu <= 1 else "wrong"),
        "left": Text("" if row.left_s is None else format_clock(row.left_s)),
        "verdict": Text(row.verdict, VERDICT_STYLES.get(row.verdict, "")),
        DETAIL: Text(_one_line(row.detail)),
    }


def _one_line(text: str) -> str:
    return llmb.printable_line(text.partition("\n")[0]).replace("\t", " ")


def _line(cells: Mapping[str, Text], titles: Collection[str], widths: Mapping[str, int]) -> Text:
    line = Text()
    for title in titles:
        blanks = " " * (widths[title] - len(cells[title].plain)) + GAP
        parts = (blanks[len(GAP) :], cells[title], GAP) if title in ON_THE_RIGHT else (cells[title], blanks)
        line.append_text(Text.assemble(*parts))
    line.rstrip()
    return line


def _summary(rows: Sequence[RunRow]) -> str:
    """Return a text on several runs such as ``12 runs: 3 completed (2 pass, 1 fail), 9 running``."""
    states = Counter(row.state or "planned" for row in rows)
    verdicts = Counter(row.verdict for row in rows if row.state == "completed" and row.verdict)
    judged = ", ".join(f"{verdicts[each]} {each}" for each in VERDICT_STYLES if verdicts[each])
    order = ["completed", *(state for state in IMPORTANCE if state != "completed"), "planned", "skipped"]
    parts = [f"{states[state]:,} {state}" for state in order if states[state]]
    if judged:
        parts[0] += f" ({judged})"
    return f"{len(rows):,} runs: {', '.join(parts)}"
