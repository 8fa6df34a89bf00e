"""The exit codes of ``llmb``, except those of errors, which are ``LlmbError.exit_code``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import llmb

FAILED = 1
"""The exit code if a run failed, or a log has no step."""

INVALID_INPUT = 2
"""The exit code for invalid arguments, and for output that cannot be written."""

SLOWER = 3
"""The exit code of ``--check`` if a verdict is fail."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in a shell: 128 + SIGINT."""

KILLED_BY_SIGPIPE = 141
"""The exit code that a shell reports for a program killed by SIGPIPE: 128 + 13."""


def combined_exit_code(
    results: Iterable[llmb.RunResult], *, sets: Sequence[llmb.RepeatSet], error: llmb.LlmbError | None = None
) -> int:
    """Return the exit code of several runs: the first of 4, 1, 2, 3 that applies, else 0.

    4: a target is unreachable or rejected a run; 1: a run did not complete; 2: another error stopped a run;
    3: a verdict of ``sets``, which are given with --check, is fail.
    """
    found = {error.exit_code} if error else set()
    for result in results:
        if result.refused:
            found.add(4)
        elif result.state != "completed":
            found.add(FAILED)
    if any(each.verdict == "fail" for each in sets):
        found.add(SLOWER)
    return next((code for code in (4, 1, 2, 3) if code in found), 0)
