"""JSON objects in lines of a log."""

import json
from collections.abc import Mapping
from typing import Any


def json_after(marker: bytes, line: bytes) -> Mapping[str, Any]:
    """Return the JSON object after a marker, which is empty if the line has none or a torn one."""
    try:
        found, _ = json.JSONDecoder().raw_decode(line[line.index(marker) + len(marker) :].decode(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
