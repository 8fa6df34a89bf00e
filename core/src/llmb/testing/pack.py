"""The contract of a pack."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from llmb.plugins.find_plugins import PluginEntry, declared_frameworks, plugin_names
from llmb.plugins.load import load
from llmb.plugins.read_pack import check_pack, read_accelerators
from llmb.plugins.recipe_files import RecipeFiles, addresses_of, exact_addresses, find_recipe
from llmb.testing.baseline_checks import baselines_of, describe_point, inconsistent_baselines, names_document
from llmb.testing.framework import FrameworkContract
from llmb.testing.job_checks import check_jobs, check_mfus
from llmb.testing.log_checks import LogContract
from llmb.testing.plugin_checks import Contract, errors_fail_the_test, fail
from llmb.values.environment import Image
from llmb.values.errors import Fault, LlmbError, PluginWarning, collect_errors
from llmb.values.recipe import Recipe
from llmb.values.texts.nearest_name import nearest_name

CHANGING_TAGS = ("", "dev", "edge", "latest", "main", "master", "nightly")
"""Tags that name another image after each build of its publisher. No tag means ``latest``."""

PACK_TESTS = {
    "test_import_is_light",  # no code
    "test_recipes_are_valid",  # the contract of a pack has these three
    "test_published_points_build_jobs",
    "test_metrics_are_plausible",
}
"""Tests of `FrameworkContract` that a declared framework does not need."""


class PackContract(Contract):
    """Tests that every pack passes. Set ``pack`` to its name.

    Put logs of a framework that the pack declares into ``logs/NAME/`` beside the file of the tests.
    """

    kind = "pack"
    pack: str

    @property
    def frameworks(self) -> list[PluginEntry]:
        """The frameworks that the pack declares and that can be read."""
        found = []
        for each in declared_frameworks(self.entry):
            with suppress(LlmbError):  # test_frameworks_are_valid reports it
                load(each)
                found.append(each)
        return found

    @property
    def own(self) -> list[PluginEntry]:
        """The pack and the frameworks of its recipes, without the recipes of other packages.

        A framework of another package has no file here, so that its own recipes are left out.
        """
        folder = self.entry.folder or Path()
        named = {each.parent.name for each in folder.glob("recipes/*/*.toml")}
        declared = {each.stem for each in folder.glob("frameworks/*.toml")}
        return [self.entry, *self.frameworks, *(_without_files(name) for name in sorted(named - declared))]

    def recipes(self) -> Iterator[Recipe]:
        """Yield the valid recipes of the pack, each release once."""
        seen, files = set[str](), RecipeFiles()
        for address in exact_addresses(self.own):
            with suppress(LlmbError):  # test_recipes_are_valid reports it
                recipe = find_recipe(address, self.own, files)
                if recipe.address not in seen:
                    seen.add(recipe.address)
                    yield recipe

    def installed_recipes(self) -> list[Recipe]:
        """Return the recipes whose framework is installed. Skip the test if the frameworks of all are missing."""
        installed = plugin_names("framework", self.registry.installed)
        recipes = list(self.recipes())
        missing = {each.framework for each in recipes}.difference(installed)
        found = [each for each in recipes if each.framework in installed and not self._is_ambiguous(each.address)]
        if missing and not found:
            pytest.skip(f"not installed: {', '.join(sorted(missing))}; install the framework to test its recipes")
        return found

    def test_files_are_valid(self) -> None:
        """The pack exists, and its GPU types and causes of failure can be read."""
        with errors_fail_the_test():
            found = check_pack(self.entry)
        if not found:
            fail(f"{self.entry} contains no data; add recipes, frameworks, accelerators.toml or signatures.toml")

    def test_recipes_are_valid(self) -> None:
        """Every recipe file can be read, and every release in it."""
        errors: list[Fault] = []
        files = RecipeFiles()
        for address in exact_addresses(self.own):
            with collect_errors(errors, LlmbError):
                find_recipe(address, self.own, files)
        if errors:
            fail("\n".join(dict.fromkeys(map(str, errors))))

    def test_frameworks_of_recipes_exist(self) -> None:
        """Each folder of recipes has the name of an installed framework. A missing framework is only a warning."""
        installed = plugin_names("framework", self.registry.installed)
        for folder in sorted({each.parent for each in (self.entry.folder or Path()).glob("recipes/*/*.toml")}):
            if folder.name not in installed:
                nearest = nearest_name(folder.name, installed)
                advice = f"did you mean {nearest!r}?" if nearest else "install it to test its recipes"
                message = f"recipes/{folder.name}: no framework of this name is installed; {advice}"
                warnings.warn(PluginWarning(message), stacklevel=2)

    def test_published_points_build_jobs(self) -> None:
        """Every published configuration gives a job, if its framework is installed."""
        check_jobs(self.registry, self.installed_recipes())

    def test_metrics_are_plausible(self) -> None:
        """No baseline gives an MFU above 100 %."""
        check_mfus(self.registry, self.installed_recipes())

    def test_baselines_are_consistent(self) -> None:
        """The tokens/s of a baseline times its step time are the tokens of a step, except for rounding."""
        for recipe in self.recipes():
            for problem in inconsistent_baselines(recipe):
                fail(problem)

    def test_numbers_have_sources(self) -> None:
        """Each source is a link or the title of a document."""
        for place, source in self._sources():
            if not names_document(source):
                fail(f"{place}: source {source!r} names no document; write its address, or its publisher and title")

    def test_images_are_pinned(self) -> None:
        """No image can change: a digest, or at least a tag that names a version."""
        for recipe in self.recipes():
            image = recipe.image
            if image and not image.file and image.pinned == image.ref and "@" not in image.ref:
                _check_tag(recipe.address, image)

    def test_addresses_are_unique(self) -> None:
        """No other installed package or pack has a framework or a recipe of the same name."""
        for address in addresses_of(self.own):
            if self._is_ambiguous(address):
                fail(self._ambiguity(address))

    def test_frameworks_are_valid(self) -> None:
        """Each declared framework passes the tests of `FrameworkContract`."""
        for framework in declared_frameworks(self.entry):
            if self._other_frameworks(framework.name):
                continue  # test_addresses_are_unique reports it
            logs = sorted((self.folder / "logs" / framework.name).glob("*.log"))
            for problem in _framework_failures(framework, logs):
                fail(f"framework {framework.name}: {problem}")

    def _other_frameworks(self, name: str) -> Sequence[PluginEntry]:
        """Return the frameworks of this name outside the pack, if the pack declares a framework of the name."""
        own = [each for each in declared_frameworks(self.entry) if each.name == name]
        named = [each for each in self.registry.installed if (each.kind, each.name) == ("framework", name)]
        return [each for each in named if each not in own] if own else []

    def _is_ambiguous(self, address: str) -> bool:
        """Check whether another installed package or pack has this recipe or its framework."""
        framework, own = address.partition("/")[0], self.own
        others = [each for each in self.registry.installed if each not in own]
        is_there = address in addresses_of(_with_framework(others, framework))
        return is_there or bool(self._other_frameworks(framework))

    def _ambiguity(self, address: str) -> str:
        """Return the error of a command that uses the address, which names both places."""
        try:
            installed = _with_framework(self.registry.installed, address.partition("/")[0])
            find_recipe(address, installed, RecipeFiles())
        except LlmbError as error:
            return str(error)
        return f"{address}: another installed package has this recipe; rename the file"

    def _sources(self) -> Iterator[tuple[str, str]]:
        """Yield each source of the pack, after its place."""
        with suppress(LlmbError):  # test_files_are_valid reports it
            yield from ((f"accelerators.toml: {each.name}", each.source) for each in read_accelerators(self.entry))
        for recipe in self.recipes():
            yield recipe.address, recipe.source
            for point in recipe.points:
                for baseline in baselines_of(point):
                    yield f"the baseline of {describe_point(recipe.address, point)}", baseline.source


def _framework_failures(framework: PluginEntry, found_logs: list[Path]) -> Iterator[str]:
    """Yield the messages of the tests of `FrameworkContract` that fail, those of logs only if there are logs."""

    class DeclaredContract(FrameworkContract):
        logs = found_logs

    tests = DeclaredContract()
    tests.framework = framework.name
    for name in dir(tests):
        needs_logs = name in vars(LogContract)
        if name.startswith("test_") and name not in PACK_TESTS and (found_logs or not needs_logs):
            try:
                getattr(tests, name)()
            except pytest.fail.Exception as failure:
                yield str(failure)
            except pytest.skip.Exception:
                continue


def _without_files(name: str) -> PluginEntry:
    """Return a framework without recipes of its own."""
    return PluginEntry(name=name, kind="framework", value="", distribution="", version="")


def _with_framework(installed: Sequence[PluginEntry], name: str) -> list[PluginEntry]:
    """Return the plugins and, if none of them is the framework of this name, the framework."""
    is_there = any((each.kind, each.name) == ("framework", name) for each in installed)
    return [*installed, *([] if is_there else [_without_files(name)])]


def _check_tag(address: str, image: Image) -> None:
    """Fail the test if the tag of an image without a digest changes. Otherwise warn."""
    tag = image.ref.rpartition("/")[2].partition(":")[2]
    if tag in CHANGING_TAGS:
        fail(f"{address}: the tag of {image.ref} names other images later; add the digest of the image")
    warnings.warn(PluginWarning(f"{address}: {image.ref} has no digest; add it, because tags can change"), stacklevel=2)
