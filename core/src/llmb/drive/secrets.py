"""Secrets: they come from the environment of this process, and travel in a file that the owner alone can read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from llmb.hookspecs import Host
from llmb.values.errors import SpecError, TargetError, UnknownOutcomeError
from llmb.values.job import Script


def missing_secrets(script: Script) -> list[str]:
    """The names of those that a script needs and the environment lacks."""
    return [name for name in script.secrets if not os.environ.get(name)]


def tell_missing_secrets(script: Script, what: str) -> list[str]:
    """A line for each secret that a script needs and the environment lacks; ``what`` says what the script is."""
    return [
        f"{name} is not set, and the {what} needs it; export it in the environment of llmb"
        for name in missing_secrets(script)
    ]


def refuse_missing_secrets(needs: Iterable[tuple[Script, str]]) -> None:
    """Raises SpecError for every secret that a script needs and the environment lacks; each with what the script is."""
    told = dict.fromkeys(line for script, what in needs for line in tell_missing_secrets(script, what))
    if told:
        raise SpecError(*told)


def forget_secrets(scripts: Iterable[Script], host: Host) -> None:
    """Remove those that the jobs themselves could not, since they never began or were killed."""
    if files := [_file(script) for script in scripts if script.secrets]:
        host.run(shlex.join(["rm", "-f", *files]))


def place_secrets(scripts: Iterable[Script], host: Host) -> None:
    """Put each script's secrets into its directory; the job removes them. Raises SpecError where one is not set."""
    scripts = tuple(scripts)
    refuse_missing_secrets((script, "job") for script in scripts)
    files = {}
    for script in scripts:
        lines = [f"export {name}={shlex.quote(os.environ[name])}\n" for name in script.secrets]
        if lines:
            files[_file(script)] = "".join(lines)
    host.put(files, mode=0o600)


def certainly_refused(error: BaseException) -> bool:
    """Whether nothing was submitted of what ended with this error."""
    return isinstance(error, TargetError | SpecError) and not isinstance(error, UnknownOutcomeError)


class SubmittedSecrets:
    """The secrets of runs on one host while they are submitted: they stay there only where a run may be there too.

    A run that another process may have submitted keeps them, since its job may be waiting for its turn.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._nowhere: set[str] = set()

    def expect(self, run_id: str) -> None:
        """This run was certainly not submitted before."""
        self._nowhere.add(run_id)

    @contextmanager
    def placed(self, scripts: Sequence[Script]) -> Iterator[None]:
        """Within it these are submitted. Raises SpecError where a secret is not set."""
        place_secrets(scripts, self._host)
        try:
            yield
        except BaseException as error:
            if certainly_refused(error):
                with suppress(TargetError):  # the refusal itself is what people are told
                    forget_secrets((script for script in scripts if script.id in self._nowhere), self._host)
            else:
                self._nowhere.difference_update(script.id for script in scripts)
            raise


def _file(script: Script) -> str:
    return f"{script.directory}/.secrets"
