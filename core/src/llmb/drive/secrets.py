"""Secrets of jobs: taken from llmb's environment, and passed in a file that only its owner can read."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence

import attrs

from llmb.records.log_copies.mask_secrets import SecretMask, known_secrets
from llmb.state_machine.observations import UnitObservation
from llmb.state_machine.units import Unit
from llmb.values.errors import SpecError, TargetError, UnknownOutcomeError
from llmb.values.host import Host
from llmb.values.job import Script
from llmb.values.job_status import JobStatus
from llmb.values.texts.error_text import hide_passwords

SHOWN_CHARACTERS = 200
"""The most characters of a running job's last line that are shown. The whole line is masked before it is cut."""

LONGEST_WORD = 40
"""Longest part of a word that is left out at the beginning of a shown text, which may be a progress bar."""


def missing_secrets(script: Script) -> list[str]:
    """Return the names of the secrets that a script needs and the environment lacks."""
    return [name for name in script.secrets if not os.environ.get(name)]


def _describe_missing(script: Script, what: str) -> list[str]:
    """Return a line for each missing secret of a script; ``what`` is what messages call the script."""
    return [
        f"{name} is not set, but the {what} needs it; export {name} before running llmb"
        for name in missing_secrets(script)
    ]


def missing_secrets_error(run_id: str, script: Script, what: str) -> SpecError:
    """Return the error of a run that cannot continue without the secrets of a script."""
    lines = _describe_missing(script, what)
    return SpecError(*(f"{run_id}: {line}; then resume with `llmb attach {run_id}`" for line in lines))


def require_secrets(needs: Iterable[tuple[Script, str]]) -> None:
    """Raise SpecError for every missing secret of these scripts, each with what messages call the script."""
    lines = dict.fromkeys(line for script, what in needs for line in _describe_missing(script, what))
    if lines:
        raise SpecError(*lines)


@attrs.frozen
class SecretFiles:
    """The files with secrets in the directories of jobs on ``host``. ``notes`` collects sentences for the user."""

    host: Host
    notes: list[str]

    def put(self, scripts: Sequence[Script]) -> None:
        """Write each script's secrets into its directory. The job removes the file. Raise SpecError or TargetError."""
        require_secrets((script, "job") for script in scripts)
        files = {
            _file(script): "".join(f"export {name}={shlex.quote(os.environ[name])}\n" for name in script.secrets)
            for script in scripts
            if script.secrets
        }
        if files:
            self.host.put(files, mode=0o600)

    def remove(self, scripts: Iterable[Script]) -> None:
        """Remove the files that jobs left, because they never started or were killed. Raise TargetError.

        Append a note if a file cannot be removed.
        """
        files = [_file(script) for script in scripts if script.secrets]
        if files and (result := self.host.run(shlex.join(["rm", "-f", *files]))).exit_code:
            note = f"warning: cannot remove files with secrets: {result.stderr.strip()}; remove them yourself"
            if note not in self.notes:
                self.notes.append(note)


def mask_output(text: str, script: Script) -> str:
    """Return a part of what the job of a script printed, with secrets masked."""
    return SecretMask(known_secrets(script.secrets)).mask_text(hide_passwords(text))


def mask_reasons(polled: Iterable[tuple[Unit, JobStatus, Script]]) -> Iterator[UnitObservation]:
    """Yield the status of each unit with secrets masked in its reason, which may be the job's last output."""
    masked: dict[tuple[str, tuple[str, ...]], str] = {}  # most jobs wait for the same reason
    for unit, status, script in polled:
        if not status.reason:
            yield unit, status
            continue
        key = (status.reason, script.secrets)
        if key not in masked:
            masked[key] = mask_output(status.reason, script)
        reason = masked[key]
        yield unit, attrs.evolve(status, reason=_shown_end(reason) if status.state == "running" else reason)


def _shown_end(text: str) -> str:
    """Return at most the last `SHOWN_CHARACTERS` of a text, after an ellipsis and without the part of a word."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    end = text[-SHOWN_CHARACTERS:]
    begin, _, rest = end.partition(" ")
    return f"... {rest if rest and len(begin) <= LONGEST_WORD else end}"


def certainly_not_submitted(error: BaseException) -> bool:
    """Check whether no job was submitted, given the error of a submission."""
    return isinstance(error, TargetError | SpecError) and not isinstance(error, UnknownOutcomeError)


def _file(script: Script) -> str:
    return f"{script.directory}/.secrets"
