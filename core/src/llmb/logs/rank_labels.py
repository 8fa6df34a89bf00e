"""Labels at the start of a line, by which launchers tell which rank it is from."""

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
"""All labels of a line, since launchers stand within launchers."""


def label_of(line: bytes) -> bytes:
    """What the line begins with if that is a label; else nothing."""
    label = LABEL.match(line)
    return label[0] if label else b""
