"""Placeholders in the command and the environment of a declared framework."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, get_args

import attrs

from llmb.plugins.declared.framework_tables import Degree
from llmb.values.errors import Fault, SpecError
from llmb.values.model import Model, Parallelism
from llmb.values.run import Run
from llmb.values.texts.nearest_name import nearest_name

_BRACES: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

DEGREES: Final = get_args(Degree)

OF_PROCESS: Final[Mapping[str, str]] = {
    "rank": "LLMB_RANK",
    "local_rank": "LLMB_LOCAL_RANK",
    "node_rank": "LLMB_NODE_RANK",
    "world_size": "LLMB_WORLD_SIZE",
    "master_addr": "LLMB_MASTER_ADDR",
    "master_port": "LLMB_MASTER_PORT",
}
"""Placeholders that differ between processes, with the variables that every scheduler sets."""

MODEL: Final = tuple(
    field.name for field in attrs.fields(Model) if field.name not in ("seq_len", "mla", "mamba", "packing")
)
"""Placeholders of the architecture, without the parts that are tables."""

OF_RUN: Final = (
    *("steps", "gpus", "nodes", "gpus_per_node", "dtype", "gpu_type", "seq_len", "gradient_accumulation", "dp"),
    *(field.name for field in attrs.fields(Parallelism)),
    *MODEL,
    *("run", "cache", "repository"),
)
"""Placeholders that all processes share."""


def names_in(text: str) -> set[str]:
    """Return the names in braces in a text."""
    return {match[1] for match in _BRACES.finditer(text) if match[1] is not None}


def check_text(text: str, key: str, options: Iterable[str]) -> Iterator[Fault]:
    """Yield an error for each brace that is not closed and for each unknown placeholder."""
    known = (*OF_RUN, *OF_PROCESS, *options)
    for match in _BRACES.finditer(text):
        name = match[1]
        if name is None and len(match[0]) == 1:
            yield Fault(message=f"a single {match[0]}", key=key, expected=f"{match[0] * 2} for a literal brace")
        elif name is not None and name not in known:
            nearest = nearest_name(name, known)
            expected = "the name of a value of the run or of an option, or {{ for a literal brace"
            yield Fault(message=f"unknown placeholder {{{name}}}", key=key, expected=expected, nearest=nearest)


def values_of(run: Run[Any], folder: str, names: Iterable[str]) -> dict[str, str]:
    """Return the values of these placeholders for a run. ``folder`` is that of the repository.

    Raise SpecError for sizes that the recipe does not state.
    """
    known: dict[str, Any] = {
        **{name: getattr(run, name) for name in ("steps", "gpus", "nodes", "gpus_per_node", "dtype", "gpu_type")},
        **attrs.asdict(run.parallelism),
        **attrs.asdict(run.options),
        "vp": run.parallelism.vp or 1,
        "dp": run.parallelism.data_parallel(run.gpus),
        "gradient_accumulation": run.parallelism.gradient_accumulation(run.gpus),
        "seq_len": run.seq_len,
        "run": run.paths.run,
        "cache": run.paths.cache,
        "repository": folder,
    }
    needed = [name for name in names if name not in OF_PROCESS]
    if run.architecture is None and (sizes := [f"{{{name}}}" for name in needed if name not in known]):
        message = f"{run.recipe} has no [model], but the framework's file uses {', '.join(sizes)}"
        raise SpecError(Fault(message=message, key="model", expected="a table [model] in the recipe"))
    values = {name: known[name] if name in known else getattr(run.model, name) for name in needed}
    if missing := sorted(name for name, value in values.items() if value is None):
        raise SpecError(*map(_missing_value, missing))
    return {name: _text(value) for name, value in values.items()}


def _missing_value(name: str) -> Fault:
    key = f"model.{name}" if name in MODEL else f"parallelism.{name}"
    message = f"the recipe has no such value, but the framework's file uses {{{name}}}"
    return Fault(message=message, key=key, expected="a value in the recipe or in the spec")


def replace(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the values of its placeholders. It has no placeholder of a process."""
    return _BRACES.sub(lambda match: match[0][0] if match[1] is None else values[match[1]], text)


def quote(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its placeholders as one word of bash. Placeholders of a process become quoted variables."""
    parts, place = [], 0
    for match in _BRACES.finditer(text):
        if match[1] in OF_PROCESS:
            parts += [replace(text[place : match.start()], values), match[1]]
            place = match.end()
    parts.append(replace(text[place:], values))
    words = (
        f'"${OF_PROCESS[part]}"' if index % 2 else shlex.quote(part) if part else "" for index, part in enumerate(parts)
    )
    return "".join(words) or "''"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_text, value)) if isinstance(value, list | tuple) else str(value)
