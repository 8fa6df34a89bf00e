"""Isolation of errors: an error of one run does not stop the others."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llmb.state_machine.observations import Observation
from llmb.values.errors import TargetError


@contextmanager
def keep_error(run_id: str, failed: dict[str, Exception]) -> Iterator[None]:
    """Keep an error of a run, so that the other runs continue."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # raised or printed later
        failed[run_id] = error


def isolate(act: Callable[[], Observation]) -> Observation | Exception:
    """Return what ``act`` returns, or the exception that it raises. A TargetError concerns all units and is raised."""
    try:
        return act()
    except TargetError:
        raise
    except Exception as error:  # noqa: BLE001  # raised after the other runs are done
        return error
