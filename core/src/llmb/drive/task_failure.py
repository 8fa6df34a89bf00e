"""The reason why a shared task failed, in one line that names its log."""

from __future__ import annotations

import re
import shlex

from llmb.hookspecs import Host
from llmb.planning import TaskPlan
from llmb.values.job_status import JobStatus

_NEWEST = """
log=
newest() { # files: set log to the newest one that is not empty
  local each
  while read -r each; do [ -s "$each" ] && log=$each && return; done < <(ls -t -- "$@" 2>/dev/null)
}
"""

TAIL_BYTES = 64 << 10
"""How much of the end of a failed task's log is kept."""

_ADVICE = re.compile(r"\s*($|hint:|\[notice\])", re.IGNORECASE)
"""Lines that tools print after an error, and that contain no cause."""


def describe_task_failure(plan: TaskPlan, status: JobStatus, host: Host) -> tuple[str, str]:
    """Return why a task failed, in one line, and the end of the log of its last phase. Raise TargetError."""
    attempt = str(status.attempt)
    phases = [[path.replace("{attempt}", attempt) for path in paths] for paths in plan.script.logs.values()]
    find = "\n".join(f"newest {shlex.join(paths)}" for paths in phases)
    result = host.run(f'{_NEWEST}{find}\necho "$log"\n[ -z "$log" ] || tail -c {TAIL_BYTES} -- "$log"')
    log, _, end = result.stdout.partition("\n")
    last = next((line.strip() for line in reversed(end[-600:].strip().splitlines()) if not _ADVICE.match(line)), "")
    from_scheduler = status.reason if plan.on == "scheduler" and status.reason != last else ""
    reason = ": ".join(each for each in (from_scheduler, last) if each)
    return f"{reason or status.reason or f'exit code {status.exit_code}'} (log: {log or phases[0][0]})", end
