"""The limit of what a host reads of each file at a time."""

ONE_FILE_BYTES = 4 << 20
ALL_FILES_BYTES = 16 << 20
MIN_BYTES = 16 << 10


def read_limit(files: int) -> int:
    """Return the most bytes to read of each of so many files in one call, so that long logs cost little memory."""
    return max(MIN_BYTES, min(ONE_FILE_BYTES, ALL_FILES_BYTES // max(files, 1)))
