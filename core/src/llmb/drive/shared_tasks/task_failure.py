"""The reason for which a shared task failed, from the end of its log and the status of its job."""

import re
import shlex
from textwrap import shorten

from llmb.drive.secrets import mask_output
from llmb.logs.failures.signature_files import preparation_failure
from llmb.plan_shared_tasks import TaskPlan
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

LONGEST_MESSAGE = 600

_ADVICE = re.compile(r"\s*($|hint:|\[notice\])", re.IGNORECASE)
"""Lines that tools print after an error, and that contain no cause."""

_ERROR = re.compile(r"\s*(?:error: |cause: |Caused by: |╰─▶ )")
"""The beginning of a message of uv, whose further lines are indented."""

_FETCHED = re.compile(r"Failed to fetch: `?([^\s`]+)")
"""The URL that uv could not download, which the last message may lack."""

_BUILD_HINT = re.compile(r"^\s*hint: This error likely indicates.*", re.MULTILINE | re.DOTALL)
"""The paragraphs that uv prints last after a failed build."""


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
    last = _last_message(end)
    is_last_line = bool(last) and status.reason.endswith(last)
    from_scheduler = "" if plan.on == "host" or is_last_line else status.reason
    fetched = [url for url in _FETCHED.findall(_last_error(end)) if url not in last][-1:]
    reason = ": ".join(each for each in (from_scheduler, known.cause if known else "", *fetched, last) if each)
    reason = f"{reason or status.reason or f'exit code {status.exit_code}'} (log: {log or phases[0][0]})"
    remedy = status.remedy or (known.remedy if known else "")
    return TaskFinalized(complete=False, reason=reason, remedy=remedy), end


def _last_error(log: str) -> str:
    """Return the log after its last ``error:`` at the beginning of a line, or "" if it has none."""
    _, found, rest = f"\n{log}".rpartition("\nerror: ")
    return rest if found else ""


def _last_message(log: str) -> str:
    """Return the last line of a log that is no advice, or all lines of the last message if uv wrapped it.

    Of a long message, such as that of a failed build with a traceback, return the first and the last line.
    """
    message: list[str] = []
    for line in _BUILD_HINT.sub("", log).splitlines():
        if _ADVICE.match(line):
            continue
        if _ERROR.match(line) or not line.startswith(" "):
            message = []
        message.append(line)
    last = message[-1].strip() if message else ""
    begin = _ERROR.match(message[0]) if message else None
    if begin is None:
        return last[-LONGEST_MESSAGE:]
    message[0] = message[0][begin.end() :]
    text = " ".join(" ".join(message).split())
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{shorten(message[0], half, placeholder='')} ... {last[-half:]}"
