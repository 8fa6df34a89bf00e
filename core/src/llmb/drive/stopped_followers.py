"""Notes on processes that follow runs but are stopped. They bring no run forward and let no other process do so."""

from collections.abc import Iterable, Iterator

import attrs

from llmb.records.lock_file import find_stopped_holders
from llmb.records.record import RunRecord
from llmb.state_machine.events import Note
from llmb.values.texts.error_text import counted


@attrs.define(eq=False)
class StoppedFollowers:
    """Reports each stopped process once."""

    _reported: set[int] = attrs.field(factory=set)

    def note(self, records: Iterable[RunRecord]) -> Iterator[Note]:
        """Yield which stopped processes follow these runs, and how to continue or end them."""
        runs = {record.directory / "lock": record.run_id for record in records}
        by_process: dict[int, list[str]] = {}
        for file, process in find_stopped_holders(runs).items():
            by_process.setdefault(process, []).append(runs[file])
        for process, (first, *others) in by_process.items():
            if process not in self._reported:
                self._reported.add(process)
                more = f" and {counted(len(others), 'other run')}" if others else ""
                yield Note(
                    text=f"process {process} follows {first}{more}, but it is stopped, as by Ctrl-Z: continue it with "
                    f"`kill -CONT {process}`, or end it with `kill -KILL {process}`, and this llmb follows instead"
                )
