"""What fails with one run alone holds up no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llmb.drive.active import ActiveRun
from llmb.values.errors import LlmbError, TargetError

T = TypeVar("T")


class HeldRuns:
    """Runs that this process leaves as they are, each with the reason, which is told when the others are done."""

    def __init__(self) -> None:
        self._reasons: dict[str, Exception] = {}

    def __contains__(self, run: ActiveRun) -> bool:
        return run.run.id in self._reasons

    @property
    def reasons(self) -> list[Exception]:
        """Why runs are left; what is no LlmbError is a bug."""
        return list(self._reasons.values())

    def hold(self, run: ActiveRun, reason: Exception) -> None:
        """Leave a run to another process, or to a later session of this one."""
        self._reasons[run.run.id] = reason
        run.record.unlock()

    def alone(self, run: ActiveRun, act: Callable[..., T], *arguments: object) -> T | None:
        """Do something with one run, unless it is held; if that fails, it is held, and null returned.

        A TargetError is not the run's but its whole site's, and raised.
        """
        if run in self:
            return None
        try:
            return act(*arguments)
        except TargetError:
            raise
        except Exception as error:  # noqa: BLE001  # of any kind: it is raised when the other runs are done
            if not isinstance(error, LlmbError):
                error.add_note(f"in run {run.run.id}")
            self.hold(run, error)
            return None

    def release(self) -> None:
        """Forget all of them: they may be tried again."""
        self._reasons.clear()
