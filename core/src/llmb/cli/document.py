"""What ``--json`` prints: one document, and nothing else, on standard output."""

from __future__ import annotations

from typing import Any

import typer


def print_json(document: Any) -> None:
    """Print it for people's eyes, too; every program reads it as well."""
    import json  # not needed without --json

    typer.echo(json.dumps(document, indent=2))
