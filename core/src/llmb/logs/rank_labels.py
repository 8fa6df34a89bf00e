"""Labels at the beginning of a line, with which launchers mark the rank that printed it."""

from __future__ import annotations

import re

LABEL = re.compile(
    rb"""(?:\s*+\d{1,6}+:[ ]                                    # srun --label
        | \[(?:default|rank)?\d+\]:[ ]?                       # torchrun
        | \[\d+,\d+\]<std(?:out|err)>:[ ]?                    # mpirun --tag-output
        | (?:\d{1,3}\.){3}\d{1,3}:[ ] | localhost:[ ]         # pdsh, an address
        | [A-Za-z][\w.-]*+(?<=\d):[ ]                         # pdsh, a name with a number
        | (?=[\w.-]{1,12}+/)(?=\S*[A-Za-z_])[\w.-]++/\d+[ ]  # nemo-run's role and replica
        )++""",
    re.VERBOSE,
)
"""All labels of a line. A launcher that starts another launcher adds a second label."""


def label_of(line: bytes) -> bytes:
    """Return the labels at the beginning of a line, or nothing."""
    label = LABEL.match(line)
    return label[0] if label else b""
