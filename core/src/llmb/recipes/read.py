"""Recipes: TOML text to a checked `Recipe`, with every fault of the file at once.

A table of points with ``options = { name = "value" }`` is a variant: it takes the place of the points of the same
gpu_type and dtype where a spec's [framework] holds these options.

What several recipes have in common stands in files ``shared/NAME.toml`` beside them, in the same form. They come below
the recipes that name them: tables are merged, and what the recipe states itself counts.

The file; what is not marked optional is required, there or in a shared file::

    shared = ["common"]                 # optional: shared/common.toml; of two that have a key, the last counts
    release = "24.11"                   # of the publisher
    description = "..."
    source = "..."                      # where the numbers come from
    flop_formula = "full"               # "full", "causal" or "full-without-gqa"
    mfu_from = "step time"              # optional: or "logged", the TFLOP/s that the framework prints
    window = "last"                     # or [first, last], in the framework's own step numbers
    steps = 50
    profile_steps = { nsys = 25 }       # optional: steps under a tool of [profile], where not as above
    captured_steps = { nsys = [20, 24] } # optional: first and last that the tool captures, where not all
    time_limit = "1h"
    memory_gb = 80                      # optional: what each GPU must have
    [image]                             # optional
    ref = "..."
    digest = "sha256:..."               # optional
    [model]                             # layers hidden ffn heads query_groups vocab seq_len; optional: experts top_k
                                        # gated flops_vocab embedding_and_loss_as_layers
    [framework]                         # optional: whatever the plugin wants
    [[points]]                          # one table for many points
    gpu_type = ["h100", "a100"]         # each a word or number, or a list of them: every combination is a point
    dtype = "bf16"
    gpus = [64, 128]
    global_batch_size = "2 * gpus"      # a number, or a rule of gpus; so too, optional: tp pp vp cp ep etp fsdp
                                        # micro_batch_size. Optional: proxy recompute_layers offload_layers cuda_graphs
    model = { layers = 2 }              # optional: replaces these of [model], for proxies
    framework = { ... }                 # optional: merged into [framework]
    [[baselines]]                       # optional: one figure for each of gpus
    gpu_type = "h100"
    dtype = "bf16"
    gpus = [64, 128]
    step_time_s = [6.999, 7.072]        # or tokens_per_s_per_gpu, where the publisher states that
                                        # optional: tokens_per_s mfu_percent days_per_1t_tokens, nan for one not stated,
                                        # release and source (else the recipe's), notes = { 128 = "..." }
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from llmb.recipes.baselines import PointKey, Published, point_name, read_baselines
from llmb.recipes.points import MODEL_CHECKS, MODEL_REQUIRED, point_key, read_points
from llmb.recipes.shared_tables import toml, with_shared
from llmb.values.errors import Fault, RecipeError, located
from llmb.values.frozen import FrozenMap
from llmb.values.job import Image
from llmb.values.model import FlopFormula, Model
from llmb.values.model_rules import check_model
from llmb.values.nearest import nearest_name
from llmb.values.recipe import MfuSource, Point, Recipe, Window
from llmb.values.run import ProfileTool
from llmb.values.tables import (
    Reader,
    check_table,
    duration,
    natural,
    number,
    one_of,
    raw,
    settings,
    string,
    whole,
)


def _window(value: Any) -> Window:
    if value == "last":
        return "last"
    try:
        return _range(value)
    except ValueError as error:
        raise ValueError(f'"last", or {error}') from None


def _range(value: Any) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2:
        first, last = map(natural, value)
        if first <= last:
            return first, last
    raise ValueError("[first, last] in the framework's own step numbers")


def _by_tool(check: Reader) -> Reader:
    """A table with a value for each tool of [profile]."""
    tools = get_args(ProfileTool)

    def check_all(value: Any) -> FrozenMap[str, Any]:
        if isinstance(value, Mapping) and value.keys() <= set(tools):
            return FrozenMap((tool, check(each)) for tool, each in value.items())
        raise ValueError(f"a table of steps by tool: {' or '.join(tools)}")

    return check_all


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"sha256:[0-9a-f]{64}", value):
        raise ValueError('"sha256:" and 64 hexadecimal digits')
    return value


def _tables(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ValueError("an array of tables")
    return value


_CHECKS: Mapping[str, Reader] = {
    "release": string,
    "description": string,
    "source": string,
    "flop_formula": one_of(*get_args(FlopFormula)),
    "mfu_from": one_of(*get_args(MfuSource)),
    "window": _window,
    "steps": whole,
    "profile_steps": _by_tool(whole),
    "captured_steps": _by_tool(_range),
    "time_limit": duration,
    "memory_gb": number,
    "image": raw,
    "model": raw,
    "framework": settings,
    "points": _tables,
    "baselines": _tables,
}
_OPTIONAL = ("mfu_from", "profile_steps", "captured_steps", "memory_gb", "image", "framework", "baselines")
_REQUIRED = tuple(name for name in _CHECKS if name not in _OPTIONAL)


def read_recipe(
    text: str, *, address: str, framework: str, file: str, shared: Mapping[str, str] = FrozenMap()
) -> Recipe:
    """The recipe in this TOML text. ``file`` names it in faults; raises RecipeError with all of them.

    ``shared`` has the texts of the shared files beside it by their names, those too that it does not name.
    """
    tables = with_shared(toml(text, file), shared, file)
    values, faults = check_table(tables, "", _CHECKS, _REQUIRED)
    model, wrong_model = _model(values.get("model"))
    image, wrong_image = _image(values.get("image"))
    baselines, wrong_baselines = read_baselines(
        values.get("baselines", ()), release=values.get("release", ""), source=values.get("source", "")
    )
    points, wrong_points = read_points(
        values.get("points", ()), model=model, framework=values.get("framework", FrozenMap()), baselines=baselines
    )
    faults += [*_window_faults(values), *wrong_model, *wrong_image, *wrong_points, *wrong_baselines]
    if not faults:
        faults = _without_point(baselines, points) + _only_variants(points)
    if faults or model is None:
        raise RecipeError(*located(faults, file))
    return Recipe(
        address=address,
        framework=framework,
        release=values["release"],
        description=values["description"],
        source=values["source"],
        model=model,
        flop_formula=values["flop_formula"],
        mfu_from=values.get("mfu_from", "step time"),
        window=values["window"],
        steps=values["steps"],
        profile_steps=values.get("profile_steps", FrozenMap()),
        captured_steps=values.get("captured_steps", FrozenMap()),
        time_limit_s=values["time_limit"],
        memory_gb=values.get("memory_gb"),
        image=image,
        points=tuple(point for point in points if not point.options),
        variants=tuple(point for point in points if point.options),
    )


def _model(table: object) -> tuple[Model | None, list[Fault]]:
    if table is None:
        return None, []
    values, faults = check_table(table, "model", MODEL_CHECKS, MODEL_REQUIRED)
    if faults:
        return None, faults
    model = Model(**values)
    return model, list(check_model(model))


def _image(table: object) -> tuple[Image | None, list[Fault]]:
    if table is None:
        return None, []
    values, faults = check_table(table, "image", {"ref": string, "digest": _digest}, ("ref",))
    return (None if faults else Image(**values)), faults


def _window_faults(values: Mapping[str, Any]) -> list[Fault]:
    window, steps = values.get("window", "last"), values.get("steps")
    if window == "last" or steps is None or window[1] <= steps:
        return []
    return [Fault(message=f"ends at step {window[1]} of {steps}", key="window", expected=f"at most {steps}")]


def _only_variants(points: tuple[Point, ...]) -> list[Fault]:
    if any(not point.options for point in points):
        return []
    return [Fault(message="all have options", key="points", expected="one that a spec without [framework] runs")]


def _without_point(baselines: Mapping[PointKey, Published], points: tuple[Point, ...]) -> list[Fault]:
    known = {point_key(point): point_name(point_key(point)) for point in points if not point.options}
    return [
        Fault(
            message=f"{point_name(point)} is not a point of this recipe",
            key=f"{published.place}.gpus",
            nearest=nearest_name(point_name(point), known.values(), cutoff=0.4),
        )
        for point, published in baselines.items()
        if point not in known
    ]
