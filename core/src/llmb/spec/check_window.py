"""Checks of the measuring window, before anything is submitted."""

from collections.abc import Iterator
from typing import Any

from llmb.values.error_text import counted
from llmb.values.errors import Fault, SpecError
from llmb.values.recipe import Window
from llmb.values.run import Run
from llmb.values.steps import LogParser


def check_window_steps(window: Window, steps: int, *, is_recipes: bool) -> Iterator[Fault]:
    """Yield the error of a window that is not within the steps of the run."""
    if window == "last" or 0 <= window[0] <= window[1] <= steps:
        return
    name = f"the recipe's window {list(window)}" if is_recipes else f"window {list(window)}"
    problem = "ends before it starts" if window[0] > window[1] else f"is outside the run's {counted(steps, 'step')}"
    expected = f'"last" or [first, last] within 0 and {steps}'
    yield Fault(message=f"{name} {problem}", key="measure.window", expected=expected)


def check_printed_steps(run: Run[Any], parser: LogParser) -> None:
    """Raise SpecError if the framework prints no step in the measuring window.

    Its parser has the number of the first step and the interval between printed steps, if they are known.
    """
    first, interval = parser.first_step, parser.printed_every
    if first is None or run.window == "last":
        return
    window, last = list(run.window), first + run.steps - 1
    if not first <= run.window[0] <= run.window[1] <= last:
        message = f"window {window} is outside the run: {run.framework} counts steps from {first} to {last}"
        expected = f'"last" or [first, last] within {first} and {last}'
        raise SpecError(Fault(message=message, key="measure.window", expected=expected))
    if run.window[1] // interval == (run.window[0] - 1) // interval:
        message = f"window {window} has no printed step: {run.framework} prints every {interval} steps"
        expected = f'"last" or a window with a multiple of {interval}'
        raise SpecError(Fault(message=message, key="measure.window", expected=expected))
