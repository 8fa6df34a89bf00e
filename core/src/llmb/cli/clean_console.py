"""A console whose colours and cursor moves are its own: those in the shown text are removed."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

import llmb


class CleanConsole(Console):
    """A console that removes everything from text that a terminal would interpret."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable with printable text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=llmb.printable_text(segment.text))
