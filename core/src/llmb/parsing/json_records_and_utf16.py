"""Conversion of logs into lines of text: from UTF-16, and from the JSON records of containers and log services."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from itertools import chain, islice

RECORDS = (
    ("log", "stream"),  # Docker's json-file driver, and Fluent Bit
    ("log", "kubernetes"),  # Fluent Bit and Fluentd, with the metadata of the pod
    ("message", "kubernetes"),  # Vector, and Fluentd
    ("line", "timestamp"),  # Grafana Loki: logcli --output=jsonl
    ("textPayload", "timestamp"),  # Google Cloud Logging, exported
    ("MESSAGE", "__REALTIME_TIMESTAMP"),  # journalctl --output=json
)
"""Keys of the line in a record, each with a second key of such records. Records of a training have other keys."""

FIRST = 3
"""Lines at the beginning of a log of which one is a complete record, if its lines are records. The first may be cut."""

MAX_RECORD_BYTES = 1 << 20
"""Most bytes of a record. Longer lines are copied in parts, so that memory does not depend on their length."""

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def needs_conversion(begin: bytes) -> bool:
    """Check whether a log with this beginning is not plain text."""
    return begin.startswith(_UTF_16) or _key_of_lines(begin) is not None


def converted(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text of a log. Each record becomes its line. Lines that are no records remain."""
    first = next(blocks, b"")
    blocks = chain([first], blocks)
    if first.startswith(_UTF_16):
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        blocks = (decoder.decode(block).encode(errors="replace") for block in blocks)
        first = next(blocks)
        blocks = chain([first], blocks)
    key = _key_of_lines(first)
    return blocks if key is None else _lines_of_records(blocks, key, ends=_have_line_ends(first, key))


def _key_of_lines(begin: bytes) -> str | None:
    """Return the key of the line in the records of a log with this beginning, or None if it has no records."""
    records = [_record(line) for line in islice(begin.splitlines(), FIRST)]
    return next((key for record in records for key, other in RECORDS if key in record and other in record), None)


def _have_line_ends(begin: bytes, key: str) -> bool:
    """Check whether the texts contain their line ends. Docker splits long lines, and only their last part has one."""
    return any(str(_record(line).get(key, "")).endswith("\n") for line in begin.splitlines())


def _lines_of_records(blocks: Iterator[bytes], key: str, *, ends: bool) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield b"".join(_text(line, key, ends=ends) for line in lines)
        if len(rest) > MAX_RECORD_BYTES:
            yield rest
            rest = b""
    yield _text(rest, key, ends=True) if _record(rest) else rest


def _text(line: bytes, key: str, *, ends: bool) -> bytes:
    """Return the text of a record, or the line itself if it is no record.

    journald writes a text with control characters, such as those of colours, as a list of bytes.
    """
    text = _record(line).get(key)
    if isinstance(text, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in text):
        return bytes(text) + b"\n"
    if not isinstance(text, str):
        return line + b"\n"
    return text.encode(errors="replace") + (b"" if ends else b"\n")


def _record(line: bytes) -> dict[str, object]:
    """Return the JSON object of a line, or an empty one."""
    if line[:1] != b"{":
        return {}
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
