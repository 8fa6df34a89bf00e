"""Trainings of MaxText, one at a time on this machine."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def no_other_training() -> Iterator[None]:
    """Wait until no other test trains.

    With several trainings on two cores, a rank may compile for more than 30 s longer than another one, which then gives
    up: "Gloo context initialization failed".
    """
    with (Path(tempfile.gettempdir()) / f"llmb-training-{os.getuid()}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
