"""Spec of the command line, which the commands of remedies contain before a record exists."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import llmb

COMMAND = re.compile(r"(?<=`)llmb (?P<name>run|validate|doctor) SPEC\b(?P<rest>[^`]*)")
OPTIONS = {"overrides": "--set", "target": "--target"}
"""Arguments of `llmb.load`, which errors name instead of a file, with their options."""

KEYS = re.compile(r"--set '?([^\s=]+)=")


class SpecArguments(NamedTuple):
    """The path of a spec on the command line, and the options that change the spec."""

    path: str | Path
    target: str | None = None
    overrides: Sequence[str] = ()

    def load(self, registry: llmb.PluginRegistry | None = None) -> llmb.Workload:
        """Load the spec with the options that change it. Raise SpecError."""
        if not os.path.exists(self.path) and (address := _recipe_of_name(str(self.path))):
            expected = f"a file, such as `llmb recipes {address} --toml >my.toml` writes"
            raise llmb.SpecError(llmb.Fault(message="a recipe, not a spec", file=str(self.path), expected=expected))
        return llmb.load(self.path, overrides=self.overrides, target=self.target, registry=registry)

    def name_in(self, text: str) -> str:
        """Return a text with this spec and its options instead of SPEC in the commands of llmb."""
        return COMMAND.sub(lambda command: f"llmb {command['name']} {self._words(**command.groupdict())}", text)

    @contextmanager
    def named_in_errors(self, options: Mapping[str, str] = OPTIONS) -> Iterator[None]:
        """Name this spec and its ``options`` in the errors of the block.

        The errors of an invalid spec omit the overrides, because one that is rejected may contain a secret.
        """
        try:
            yield
        except llmb.LlmbError as error:
            import attrs

            named = self._replace(overrides=()) if isinstance(error, llmb.SpecError) else self
            error.faults = tuple(
                attrs.evolve(
                    fault,
                    file=self._name_option(fault.file, options),
                    message=named.name_in(fault.message),
                    expected=fault.expected and named.name_in(fault.expected),
                )
                for fault in error.faults
            )
            raise

    def _name_option(self, place: str | None, options: Mapping[str, str]) -> str | None:
        """Return the option of an argument of `llmb.load`, or the file that an error names."""
        return place if place is None or place == str(self.path) else options.get(place, place)

    def _words(self, name: str, rest: str) -> str:
        """Return what follows the name of a command. An option of ``rest`` replaces an override of the same key."""
        path = f"./{self.path}" if str(self.path).startswith("-") else str(self.path)
        target = [self.target] if self.target else []
        words = [*target, path] if name == "doctor" else [path, *(("--target", *target) if target else ())]
        for override in self.overrides:
            if override.partition("=")[0].strip() not in KEYS.findall(rest):
                words += ["--set", override]
        return shlex.join(words) + rest


def _recipe_of_name(name: str) -> str | None:
    """Return the address of the recipe with this name, with or without its framework and release, or None."""
    plain, bases = name.partition("@")[0], {each.partition("@")[0] for each in llmb.recipe_names()}
    found = sorted(each for each in bases if plain in (each, each.rpartition("/")[2]))
    return (name if plain in found else f"{llmb.framework_of(found[0])}/{name}") if found else None
