"""The commands that turn logs and step times into figures, and list recipes. They start nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llmb.cli.arguments import refuse_together
from llmb.cli.document import print_json
from llmb.cli.main import app, errors_of, tell
from llmb.cli.run import AsJson

if TYPE_CHECKING:
    from llmb.parsing.directories import ParsedPath
    from llmb.values.errors import LlmbError
    from llmb.values.recipe import Recipe, Window

Logs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="LOG",
        help="Logs, directories of logs, or - for standard input; by default the framework's own directory.",
    ),
]
STANDARD_INPUT = Path("/dev/stdin")
Address = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="A recipe, as `llmb recipes` lists it.", show_default=False)
]


@app.command()
def parse(
    framework: Annotated[str, typer.Option("--framework", metavar="NAME", help="The framework that wrote them.")],
    logs: Logs = None,
    window: Annotated[str | None, typer.Option("--window", metavar="last|35:44", help="Steps of the mean.")] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", min=1, help="Steps that a whole log has.")
    ] = None,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print one line a step (of one log) or a log (of several).")
    ] = False,
    full_names: Annotated[bool, typer.Option("--full-names", help="Of several logs: the files' whole names.")] = False,
) -> None:
    """Read training logs: every step, and the mean over a window."""
    from llmb.cli import parsed
    from llmb.parsing.directories import LogReader
    from llmb.plugins.registry import PluginRegistry
    from llmb.values.errors import LogError

    refuse_together({"--json": as_json, "--csv": as_csv})
    pool = PluginRegistry()
    logs = logs or [_own_directory(pool.framework(framework).log_files.directory, framework)]
    logs = [STANDARD_INPUT if str(each) == "-" else each for each in logs]
    reader = LogReader(framework=framework, pool=pool, window=_window(window), steps_asked=steps)
    read = [reader.read(path) for path in logs]
    found = [log for each in read for log in each.logs]
    error = LogError(*faults) if (faults := [fault for each in read for fault in each.faults]) else None
    if error and not found:
        raise error
    single = len(logs) == 1 and not logs[0].is_dir()
    if as_json:
        errors = {"errors": errors_of(error)} if error else {}
        print_json(found[0].as_dict() if single else {**parsed.several(read, full_names=full_names), **errors})
    elif as_csv:
        typer.echo(parsed.steps_csv(found[0]) if single else parsed.logs_csv(found, full_names=full_names), nl=False)
    elif single:
        parsed.print_one(found[0])
    else:
        parsed.print_several(found, full_names=full_names)
    _end(read, error, framework, as_json=as_json)


def _end(read: Sequence[ParsedPath], error: LlmbError | None, framework: str, *, as_json: bool) -> None:
    """Say what there is no figure of, and end with the status of it."""
    from llmb.cli import parsed

    if not as_json:
        for line in parsed.passed_over_lines(read):
            typer.echo(f"llmb: {line}", err=True)
        if error:
            tell(error)
    without_step = [(each.path, why) for each in read if (why := each.why_no_step(framework))]
    for path, why in without_step:
        typer.echo(f"llmb: {path}: {why}", err=True)
    if error or without_step:
        raise typer.Exit(error.exit_code if error else 1)


def _own_directory(name: str | None, framework: str) -> Path:
    """Where the framework's logs are when nobody says so: a directory of that name, here."""
    if name is None:
        raise typer.BadParameter(f"{framework} has no directory of its own for logs; name one", param_hint="LOG")
    if not Path(name).is_dir():
        message = f"there is no directory {name} here, where {framework} has its logs; name a log or a directory"
        raise typer.BadParameter(message, param_hint="LOG")
    return Path(name)


def _window(text: str | None) -> Window | None:
    if text is None or text == "last":
        return "last" if text else None
    first, colon, last = text.partition(":")
    if colon and first.isdecimal() and last.isdecimal() and int(first) <= int(last):
        return int(first), int(last)
    raise typer.BadParameter(
        f"{text!r} is not a window; expected last, or FIRST:LAST such as 35:44", param_hint="--window"
    )


@app.command()
def metrics(
    address: Address,
    gpu_type: Annotated[str, typer.Option("--gpu-type", metavar="T", help="Such as h100.")],
    dtype: Annotated[str, typer.Option("--dtype", metavar="D", help="Such as bf16.")],
    gpus: Annotated[int, typer.Option("--gpus", metavar="N", help="How many.")],
    step_time: Annotated[float | None, typer.Option("--step-time", metavar="S", help="Seconds.")] = None,
    tflops_per_gpu: Annotated[float | None, typer.Option("--tflops-per-gpu", metavar="X", help="As logged.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute figures from a step time, logged TFLOP/s, or both. They are those of a published point of a recipe."""
    from llmb.api import metrics as compute
    from llmb.cli.results import print_metrics

    if step_time is None and tflops_per_gpu is None:
        raise typer.BadParameter("one of them is needed", param_hint="--step-time, --tflops-per-gpu")
    found = compute(
        address, gpu_type=gpu_type, dtype=dtype, gpus=gpus, step_time_s=step_time, tflops_per_gpu=tflops_per_gpu
    )
    if as_json:
        print_json(found.as_dict())
    else:
        print_metrics(found)


@app.command()
def recipes(
    address: Annotated[str | None, typer.Argument(metavar="ADDRESS", help="One recipe, with all its points.")] = None,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print a workload to start from.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the recipes; of one, every point that is published."""
    refuse_together({"--toml": as_toml, "--json": as_json})
    if address is not None:
        _one_recipe(address, as_toml=as_toml, as_json=as_json)
    elif as_toml:
        raise typer.BadParameter("needs a recipe's ADDRESS", param_hint="--toml")
    else:
        _all_recipes(as_json=as_json)


def _all_recipes(*, as_json: bool) -> None:
    from llmb.cli import recipe_tables
    from llmb.plugins.recipe_files import addresses_of
    from llmb.plugins.registry import PluginRegistry

    pool = PluginRegistry()
    found = [pool.recipe(each) for each in addresses_of(pool.installed)]
    if as_json:
        print_json({"recipes": [recipe_tables.brief(each) for each in found]})
    else:
        recipe_tables.print_list(found)


def _one_recipe(address: str, *, as_toml: bool, as_json: bool) -> None:
    from llmb.cli import recipe_tables
    from llmb.plugins.recipe_files import load_recipe

    recipe = load_recipe(address)
    if as_toml:
        typer.echo(recipe_tables.workload_toml(recipe, _schedulers(recipe)), nl=False)
    elif as_json:
        print_json(recipe_tables.whole(recipe))
    else:
        recipe_tables.print_points(recipe)


def _schedulers(recipe: Recipe) -> dict[str, dict[str, str]]:
    """The installed ones, each with the keys of [target] that it cannot do without, and what these hold.

    First are those that could hold the recipe's first point, and of them those that need no further key.
    """
    from llmb.plugins.registry import PluginRegistry
    from llmb.spec.check import required_options
    from llmb.spec.resolve import known_accelerators
    from llmb.values.errors import LlmbError

    pool, point = PluginRegistry(), recipe.points[0]
    accelerator = known_accelerators(pool).get(point.gpu_type)
    several_nodes = accelerator is not None and point.gpus > accelerator.gpus_per_node
    ranked: list[tuple[bool, int, str, dict[str, str]]] = []
    for name in {each.name for each in pool.installed if each.kind == "scheduler"}:
        try:
            scheduler = pool.scheduler(name)
            required = required_options(scheduler.options)
            ranked.append((several_nodes and scheduler.single_node, len(required), name, required))
        except LlmbError:
            ranked.append((True, 0, name, {}))  # it does not work; `llmb plugins` says why
    return {name: required for *_, name, required in sorted(ranked, key=lambda each: each[:3])}
