"""Whether a run will have the steps that it is to be measured by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmb.hookspecs import FrameworkHooks
from llmb.values.errors import Fault
from llmb.values.run import Run


def window_faults(run: Run[Any], framework: FrameworkHooks[Any]) -> Iterator[Fault]:
    """A window beyond the numbers that the framework gives to its steps, where its parser knows the first of them."""
    first = framework.parse_log(run=run).first_step
    if first is None or run.window == "last":
        return
    last = first + run.steps - 1
    if not first <= run.window[0] <= run.window[1] <= last:
        message = f"is {list(run.window)}, and {run.framework} counts {run.steps} steps from {first} to {last}"
        yield Fault(message=message, key="measure.window", expected=f'"last", or steps within {first} and {last}')
