"""What the arguments of several commands are held to."""

from __future__ import annotations

from collections.abc import Mapping

import typer


def refuse_together(options: Mapping[str, bool]) -> None:
    """Raise where more than one of these options is given, since one would be ignored."""
    given = [name for name, wanted in options.items() if wanted]
    if len(given) > 1:
        raise typer.BadParameter("only one of them", param_hint=", ".join(given))
