"""Labels at the beginning of a line, with which launchers mark the rank that printed it."""

from __future__ import annotations

import re

LABEL = re.compile(
    rb"""(?:\s*+\d{1,6}+:[ ]                                    # srun --label
        | \[(?:(?![Ss]tep|[Ii]ter|[Ee]poch)[A-Za-z][\w.-]{0,62}:?)?\d{1,6}\]:[ ]?  # torchrun: role, local rank
        | \[\d+,(?:mpirank:)?\d+(?:,[\w.-]{1,63})?\]<std(?:out|err)>:[ ]?  # mpirun --tag-output, of SageMaker too
        | \[pod/[\w.-]{1,253}/[\w.-]{1,63}\][ ]               # kubectl logs --prefix
        | \((?:[^()\n]{1,60}[ ])?pid=\d{1,9}(?:,[ ]ip=[\d.]{7,15})?\)[ ]  # Ray, SkyPilot
        | (?:\d{1,3}\.){3}\d{1,3}:[ ] | localhost:[ ]         # pdsh, an address
        | (?=[A-Za-z][\w.-]*+(?<=\d):[ ])(?!python|mlx\d|E[A-Z]\d{4}:  # pdsh, a name with a number, no code of CANN
             | (?:(?i:(?:[a-z]+_)?(?:step|it(?:er(?:ation)?)?|update|epoch|batch)s?|stage|error)|GPU|CUDA)[_-]?\d++:
             )[\w.-]++:[ ]
        | (?=[\w.-]{1,12}+/)(?=\S*[A-Za-z_])[\w.-]++/\d+[ ]  # nemo-run's role and replica
        )++""",
    re.VERBOSE,
)
"""All labels of a line. A launcher that starts another launcher adds a second label."""

_PROGRAM = re.compile(
    rb"[A-Za-z][\w.-]*+ (?=[\w./@-]++\[\d{1,9}\]: )(?!\S*(?:[Ss]tep|[Ii]ter|[Ee]poch))\S*[A-Za-z]\S* "
)
"""Host, program and process in journald and syslog, which print the time before them."""

_TIME = re.compile(
    rb"""\[\d+\ similar\ log\ lines\][ ](?:\[\d+\][ ])?  # Monarch, of several processes, and the rank of one
       | \[?(?: \d{4}-\d\d-\d\d[T ] | [A-Z][a-z]{2}[ ][ \d]\d[ ] )?+\d\d:\d\d:\d\d[\w.,:+-]{0,16}+\]?[ ]
         (?: std(?:out|err)[ ][FP][ ] )?+  # containerd, in the logs of pods""",
    re.VERBOSE,
)


def without_time(line: bytes) -> bytes:
    """Return a line without the time that `kubectl logs --timestamps`, `ts` or a launcher writes before all text.

    Monarch writes a number of similar lines there.
    """
    time = _TIME.match(line)
    return line[time.end() :] if time else line


def label_of(line: bytes) -> bytes:
    """Return the labels at the beginning of a line without its time, or nothing."""
    program = _PROGRAM.match(line)
    begin = program.end() if program else 0
    label = LABEL.match(line, begin)
    return line[: label.end() if label else begin]
