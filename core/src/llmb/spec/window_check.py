"""Whether a run will have the steps that it is to be measured by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb.hookspecs import FrameworkHooks
from llmb.values.errors import Fault
from llmb.values.run import Run


def window_faults(run: Run[Any], framework: FrameworkHooks[Any]) -> Iterator[Fault]:
    """A window beyond the numbers that the framework gives to its steps, or between two that it prints.

    The framework's parser tells the first number, and which are printed, where it knows them.
    """
    parser = framework.parse_log(run=run)
    first, every = parser.first_step, parser.printed_every
    if first is None or run.window == "last":
        return
    last = first + run.steps - 1
    if not first <= run.window[0] <= run.window[1] <= last:
        message = f"is {list(run.window)}, and {run.framework} counts {run.steps} steps from {first} to {last}"
        yield Fault(message=message, key="measure.window", expected=f'"last", or steps within {first} and {last}')
    elif run.window[1] // every == (run.window[0] - 1) // every:
        message = f"is {list(run.window)}, and of the steps only those are printed that {every} divides"
        yield Fault(message=message, key="measure.window", expected=f'"last", or a window with a multiple of {every}')
