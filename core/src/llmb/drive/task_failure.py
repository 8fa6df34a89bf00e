"""Why a task could not be made, in one line that names its log."""

from __future__ import annotations

import re
import shlex

from llmb.hookspecs import Host
from llmb.planning import TaskPlan
from llmb.values.job_status import JobStatus

_NEWEST = """
log=
newest() { # files: the one that was written last, if it holds anything
  local each
  while read -r each; do [ -s "$each" ] && log=$each && return; done < <(ls -t -- "$@" 2>/dev/null)
}
"""

END = 64 << 10  # bytes of a log that people are shown

_ADVICE = re.compile(r"\s*($|hint:|\[notice\])", re.IGNORECASE)
"""What tools say after their error: no cause by itself."""


def describe_task_failure(planned: TaskPlan, status: JobStatus, host: Host) -> tuple[str, str]:
    """What the scheduler says and the last words of the last phase that wrote any; and the end of that one's log.

    Raises TargetError.
    """
    attempt = str(status.attempt)
    phases = [[path.replace("{attempt}", attempt) for path in paths] for paths in planned.script.logs.values()]
    look = "\n".join(f"newest {shlex.join(paths)}" for paths in phases)
    answer = host.run(f'{_NEWEST}{look}\necho "$log"\n[ -z "$log" ] || tail -c {END} -- "$log"')
    log, _, end = answer.stdout.partition("\n")
    last = next((line.strip() for line in reversed(end[-600:].strip().splitlines()) if not _ADVICE.match(line)), "")
    said = status.reason if planned.on == "scheduler" and status.reason != last else ""
    words = ": ".join(each for each in (said, last) if each) or status.reason or f"exit status {status.exit_code}"
    return f"{words} (log: {log or phases[0][0]})", end
