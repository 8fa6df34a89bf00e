"""Labels at the beginning of a line, with which launchers mark the rank that printed it."""

from __future__ import annotations

import re

_LABELS = rb"""(?>(?:\s*+\d{1,6}+:[ ]                                    # srun --label
        | \[(?:(?![Ss]tep|[Ii]ter|[Ee]poch)[A-Za-z][\w.-]{0,62}:?)?\d{1,6}\]:[ ]?  # torchrun: role, local rank
        | \[\d+,(?:mpirank:)?\d+(?:,[\w.-]{1,63})?\]<std(?:out|err)>:[ ]?  # mpirun --tag-output, of SageMaker too
        | \[pod/[\w.-]{1,253}/[\w.-]{1,63}\][ ]               # kubectl logs --prefix
        | \((?:[^()\n]{1,60}[ ])?pid=\d{1,9}(?:,[ ]ip=[\d.]{7,15})?\)[ ]  # Ray, SkyPilot
        | (?:\d{1,3}\.){3}\d{1,3}:[ ] | localhost:[ ]         # pdsh, an address
        | (?=[A-Za-z][\w.-]*+(?:(?<=\d)|@[\w.-]++(?=[ ]))(?::[ ]|[ ]{2,60}\|[ ]))  # pdsh, Docker Compose and Swarm
             (?!python|mlx\d|E[A-Z]\d{4}:  # no code of CANN
             | (?:(?i:(?:[a-z]+_)?(?:step|it(?:er(?:ation)?)?|update|epoch|batch)s?|stage|error)|GPU|CUDA)[_-]?\d++[:\ ]
             )[\w.@-]++(?::|[ ]++\|)[ ]
        | (?=[\w.-]{1,12}+/)(?=\S*[A-Za-z_])[\w.-]++/\d+[ ]  # nemo-run's role and replica
        )+)"""
"""All labels of a line. A launcher that starts another launcher adds a second label.

Groups are atomic instead of possessive, because a possessive group may match too much before Python 3.11.5.
"""

_PROGRAM = rb"[A-Za-z][\w.-]*+[ ](?=[\w./@-]++\[\d{1,9}\]:[ ])(?!\S*(?:[Ss]tep|[Ii]ter|[Ee]poch))\S*[A-Za-z]\S*[ ]"
"""Host, program and process in journald and syslog, which print the time before them."""

_TIME = rb"""(?:\[\d+\ similar\ log\ lines\][ ](?:\[\d+\][ ])?  # Monarch, of several processes, and the rank of one
       | \[?(?> \d{4}-\d\d-\d\d[T ] | [A-Z][a-z]{2}[ ][ \d]\d[ ] | )\d\d:\d\d:\d\d[\w.,:+-]{0,16}+\]?[ ]
         (?> std(?:out|err)[ ][FP][ ] | )  # containerd, in the logs of pods
       )"""
"""The time that `kubectl logs --timestamps`, `ts` or a launcher prints, and Monarch's number of similar lines."""

_BEGINNING = re.compile(
    rb"(?>\xef\xbb\xbf|) (?>%b|) (?>(%b)|) (?> (%b) (?>%b|) (?>(%b)|) (?>%b|) |)"
    % (_TIME, _PROGRAM, _LABELS, _TIME, _LABELS, _TIME),
    re.VERBOSE,
)
"""All that comes before the text of a line: a byte-order mark, labels, and times before, between and behind them."""

_RANK = re.compile(
    rb"(?>\xef\xbb\xbf|) (?> %b (?>%b|) |) (%b) (?> (?<=[\]|][ ]) %b (%b) |)"
    % (_TIME, _PROGRAM, _LABELS, _TIME, _LABELS),
    re.VERBOSE,
)
"""The beginning of a line that has a label, up to its last label. A time may come first or behind the label of a
container. Other places of a time are left out, because the line of each step is searched.
"""


def split_label(line: bytes) -> tuple[bytes, bytes]:
    """Return the labels at the beginning of a line and its text. Labels contain host and program, but no times."""
    match = _BEGINNING.match(line)
    if match is None:
        return b"", line
    return b"".join(filter(None, match.groups())), line[match.end() :]


def rank_label(line: bytes) -> bytes:
    """Return the labels at the beginning of a line. The program is left out, because a new run has another process."""
    match = _RANK.match(line)
    return match[1] + (match[2] or b"") if match else b""
