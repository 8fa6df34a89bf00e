"""How much is read at a time, so that following large logs, or many, costs little memory."""

from __future__ import annotations

ONE_FILE_BYTES = 4 << 20
ALL_FILES_BYTES = 16 << 20
LEAST_BYTES = 16 << 10


def read_limit(files: int) -> int:
    """The most bytes of one of so many files in one call; the rest is for the next."""
    return max(LEAST_BYTES, min(ONE_FILE_BYTES, ALL_FILES_BYTES // max(files, 1)))
