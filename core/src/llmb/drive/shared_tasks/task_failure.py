"""The reason for which a shared task failed, from the end of its log and the status of its job."""

import shlex

from llmb.drive.secrets import mask_output
from llmb.logs.failures.last_message_of_task import last_message
from llmb.logs.failures.signature_files import preparation_failure
from llmb.plan_tasks import TaskPlan
from llmb.state_machine.observations import TaskFinalized
from llmb.values.host import Host
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


def find_task_failure(plan: TaskPlan, status: JobStatus, host: Host) -> tuple[TaskFinalized, str]:
    """Return why a task failed, and the end of the log of its last phase. Secrets are masked. Raise TargetError."""
    attempt = str(status.attempt)
    phases = [[path.replace("{attempt}", attempt) for path in paths] for paths in plan.script.logs.values()]
    find = "\n".join(f"newest {shlex.join(paths)}" for paths in phases)
    result = host.run(f'{_NEWEST}{find}\necho "$log"\n[ -z "$log" ] || tail -c {TAIL_BYTES} -- "$log"')
    log, _, end = result.stdout.partition("\n")
    if len(end.encode()) >= TAIL_BYTES:  # the first line may begin within a secret
        end = end.partition("\n")[2]
    end = mask_output(end, plan.script)
    known = preparation_failure(end)
    last = last_message(end)
    from_scheduler = status.reason if plan.on == "scheduler" and status.reason != last else ""
    reason = ": ".join(each for each in (from_scheduler, known.cause if known else "", last) if each)
    reason = f"{reason or status.reason or f'exit code {status.exit_code}'} (log: {log or phases[0][0]})"
    remedy = status.remedy or (known.remedy if known else "")
    return TaskFinalized(complete=False, reason=reason, remedy=remedy), end
