"""Cross-key checks: combinations that are impossible although each value is valid."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import attrs

from llmb.hookspecs import FrameworkHooks
from llmb.spec.assemble_run import with_published_capture
from llmb.spec.follow_up_errors import overlaps
from llmb.spec.published_baseline import published_steps
from llmb.spec.workload_tables import SpecTables
from llmb.values.errors import Fault, SpecError
from llmb.values.profile_and_telemetry import Profile
from llmb.values.recipe import Recipe, Window
from llmb.values.rules.model_rules import check_model, check_model_keys
from llmb.values.rules.parallelism_rules import DIVISION_CHECKS, check_nodes
from llmb.values.run import Run
from llmb.values.steps import LogParser
from llmb.values.texts.error_text import counted

_MACHINE = ("workload.gpu_type", "workload.gpus", "target.scheduler", "target.name", "target.gpus_per_node")
_PARTS = {"mla": "multi-head latent attention", "mamba": "Mamba layers", "layer_pattern": "layer pattern"}
_STEPS = ("workload.steps", "profile.tool")


def find_conflicts(
    spec: SpecTables,
    recipe: Recipe,
    run: Run[Any] | None,
    framework: FrameworkHooks[Any] | None,
    suspects: Collection[str],
) -> list[Fault]:
    """Return all conflicts between keys. A check that reads a suspect key is skipped.

    ``run`` is None if the published point is unknown; then only keys that do not depend on the point are checked.
    """
    overrides = [*_check_overrides(run, framework)] if run and framework and not overlaps(suspects, ("model",)) else []
    suspects = {*suspects, *(error.key for error in overrides if error.key)}
    of_steps = (errors for keys, errors in _checks_of_steps(spec, recipe) if not overlaps(suspects, keys))
    found = [*itertools.chain.from_iterable(of_steps)]
    stated = [*(f"model.{name}" for name in spec.model), *(f"parallelism.{name}" for name in spec.parallelism)]
    for keys, errors in _checks_of_run(run, spec) if run else ():
        if not overlaps(suspects, keys) and (wrong := list(errors)):
            found += wrong
            # One wrong value fails several checks: most probably one that the spec states instead of the recipe's.
            suspects |= {key for key in stated if overlaps((key,), keys)} or {*keys}
    return [*found, *overrides]


def _checks_of_steps(spec: SpecTables, recipe: Recipe) -> Iterator[tuple[tuple[str, ...], Iterable[Fault]]]:
    """Yield the errors of each check, with the keys that the check reads."""
    steps = spec.workload.steps or published_steps(recipe, spec.profile)
    window = spec.measure.window or recipe.window
    profile = with_published_capture(spec.profile, recipe)
    yield (*_STEPS, "measure.window"), _check_window(window, steps, is_recipes=not spec.measure.window)
    if profile:
        yield ("profile.tool",), _check_nsys_only(profile)
        yield (*_STEPS, "profile.start_step", "profile.stop_step"), _check_capture(profile, steps)
        yield ("workload.gpus", "profile.ranks"), _check_ranks(profile, spec.workload.gpus)


def _checks_of_run(run: Run[Any], spec: SpecTables) -> Iterator[tuple[tuple[str, ...], Iterable[Fault]]]:
    """Yield the errors of each check, with the keys that the check reads."""
    yield ("model",), check_model(run.architecture)
    yield ("model",), check_model_keys(spec.model, run.architecture)
    yield _MACHINE, check_nodes(run.gpus, run.gpus_per_node)
    yield _MACHINE, _check_one_node(run, spec.gpus_per_node)
    for keys, check in DIVISION_CHECKS:
        errors = check(run.architecture, run.parallelism, run.gpus)
        yield keys, errors if spec.parallelism else map(_of_published_layout, errors)


def _check_overrides(run: Run[Any], framework: FrameworkHooks[Any]) -> Iterator[Fault]:
    """Yield an error for each key that the framework cannot override, and for each part that the model lacks."""
    for key in run.overrides:
        table, _, name = key.partition(".")
        part, _, size = name.partition(".")
        if (table != "model" and name != "pipeline_layout") or run.published_architecture is None:
            continue
        if part not in framework.model_keys:
            message = f"{run.framework} cannot override this key"
            expected = f"the recipe's value; {run.framework} can override {', '.join(framework.model_keys)}"
            yield Fault(message=message, key=key, expected=expected)
        elif (size or part == "layer_pattern") and getattr(run.published_architecture, part) is None:
            message = f"the recipe's model has no {_PARTS[part]}"
            yield Fault(message=message, key=key, expected="no such key")


def _of_published_layout(error: Fault) -> Fault:
    """Add to an error of the number of GPUs that the publisher's layout, which the user did not choose, causes it."""
    if error.key != "workload.gpus":
        return error
    return attrs.evolve(error, expected=f"{error.expected}, or a [parallelism] of your own instead of the publisher's")


def _check_one_node(run: Run[Any], gpus_per_node: int | None) -> Iterator[Fault]:
    if gpus_per_node and run.nodes == 1 and run.gpus > gpus_per_node:
        message = f"the machine has {counted(gpus_per_node, 'GPU')}, but the run needs {run.gpus}"
        yield Fault(message=message, key="workload.gpus", expected=f"at most {gpus_per_node}")


def _check_window(window: Window, steps: int, *, is_recipes: bool) -> Iterator[Fault]:
    """Yield the error of a window that is not within the steps of the run."""
    if window == "last" or 0 <= window[0] <= window[1] <= steps:
        return
    name = f"the recipe's window {list(window)}" if is_recipes else f"window {list(window)}"
    problem = "ends before it starts" if window[0] > window[1] else f"is outside the run's {counted(steps, 'step')}"
    expected = f'"last" or [first, last] within 0 and {steps}'
    yield Fault(message=f"{name} {problem}", key="measure.window", expected=expected)


def _check_capture(profile: Profile, steps: int) -> Iterator[Fault]:
    first = 0 if profile.start_step is None else profile.start_step
    last = steps if profile.stop_step is None else profile.stop_step
    if not 0 <= first < last <= steps:
        message = f"steps {first} to {last} are not a range within the run's {counted(steps, 'step')}"
        yield Fault(message=message, key="profile", expected=f"0 <= start_step < stop_step <= {steps}")


def _check_ranks(profile: Profile, gpus: int) -> Iterator[Fault]:
    if unknown := [rank for rank in profile.ranks or () if not 0 <= rank < gpus]:
        message = f"no rank {', '.join(map(str, unknown))} among {counted(gpus, 'GPU')}"
        yield Fault(message=message, key="profile.ranks", expected=f"ranks from 0 to {gpus - 1}")
    if profile.ranks == ():
        yield Fault(message="empty list", key="profile.ranks", expected="at least one rank, or remove the key")


def _check_nsys_only(profile: Profile) -> Iterator[Fault]:
    for field in attrs.fields(Profile) if profile.tool == "nccl-trace" else ():
        if field.name != "tool" and getattr(profile, field.name) != field.default:
            message = "only nsys supports this key; nccl-trace traces all ranks from start to end"
            yield Fault(message=message, key=f"profile.{field.name}")


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
