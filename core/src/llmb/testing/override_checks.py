"""Contract tests of the values with which a spec overrides a recipe: each has an effect or is rejected."""

from collections.abc import Iterator
from contextlib import suppress
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from llmb.recipes.sizes import DEGREES
from llmb.testing.job_checks import JobContract
from llmb.testing.plugin_checks import fail
from llmb.testing.sample_runs import Tables, build, describe, load_run, with_key
from llmb.values.errors import LlmbError, SpecError
from llmb.values.run import Run
from llmb.values.texts.error_text import format_value

IMAGE = "registry.example/contract:1.0"
MODEL = ("layers", "hidden", "ffn", "heads", "query_groups", "vocab", "seq_len")


class OverrideContract(JobContract):
    """Tests of specs that differ from the published configurations."""

    def test_invalid_runs_raise_spec_errors(self) -> None:
        """A hook that does not support a valid run raises SpecError and nothing else."""
        for key, _, published, run in self._variations():
            if self.call_hooks_or_none(published) is None:
                continue  # test_published_points_build_jobs reports it
            try:
                build(self.registry, run)
            except SpecError:
                continue
            except LlmbError as error:
                fail(
                    f"{describe(run)} with another {key}: {error}; reject the value with a SpecError for the key {key}"
                )

    def test_options_take_effect_or_are_rejected(self) -> None:
        """A value that changes nothing is rejected, because the run would differ from its record."""
        for key, value, published, run in self._variations():
            built, before = self.call_hooks_or_none(run), self.call_hooks_or_none(published)
            if built and before and built == before:
                fail(f"{describe(run)}: {key} = {value} does not change the job; use the value or reject it")
        for name, values in choices(self.plugin.options) if self.addresses else ():
            if not any(self._has_effect(f"framework.{name}", value) for value in values):
                tried = ", ".join(map(format_value, values))
                fail(
                    f"option {name} changes no job of the published configurations (values tried: {tried}); "
                    "use the option or remove it"
                )

    def _variations(self) -> Iterator[tuple[str, Any, Run[Any], Run[Any]]]:
        """Yield runs of each recipe with one other value that core accepts: key, value, published run, run."""
        seen = set[str]()
        for tables, spec in self.specs:
            if spec.run.recipe in seen:
                continue
            seen.add(spec.run.recipe)
            for key, value in _changes(spec.run):
                run = self.load(with_key(tables, key, value))
                if run is not None:
                    yield key, value, spec.run, run

    def _has_effect(self, key: str, value: Any) -> bool:
        for tables, spec in self.specs:
            run = self.load(with_key(tables, key, value))
            built, before = (self.call_hooks_or_none(run) if run else None), self.call_hooks_or_none(spec.run)
            if built is None or (before is not None and built != before):
                return True
        return False

    def load(self, tables: Tables) -> Run[Any] | None:
        """Return the run of a spec, or None if core rejects it."""
        with suppress(LlmbError):
            return load_run(self.registry, tables).run
        return None


def _changes(run: Run[Any]) -> Iterator[tuple[str, Any]]:
    """Yield keys of a spec, each with another value than that of a published run."""
    yield "workload.steps", 2 * run.steps
    yield "workload.image", IMAGE
    yield "profile.tool", "nsys"
    for table, names in (("parallelism", DEGREES), ("model", MODEL if run.architecture else ())):
        for name in names:
            value = getattr(getattr(run, table), name, None)
            yield f"{table}.{name}", 2 * (value or 1)


def choices(options: type) -> Iterator[tuple[str, list[Any]]]:
    """Yield the options that have few values or are numbers, each with some values other than its default."""
    hints = get_type_hints(options)
    for field in attrs.fields(options):
        hint = hints[field.name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        values = [each for kind in kinds for each in _values_of(kind) if each != field.default]
        if values:
            yield field.name, values


def _values_of(kind: Any) -> list[Any]:
    """Return values of a type: all of a bool or a Literal, two of a number, none of another type."""
    if kind is bool:
        return [True, False]
    if kind in (int, float):
        return [2, 3]
    return list(get_args(kind)) if get_origin(kind) is Literal else []
