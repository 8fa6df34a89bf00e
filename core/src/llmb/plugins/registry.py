"""The plugins and recipes that one command uses, each loaded once."""

import functools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

import attrs

from llmb.hookspecs import FrameworkHooks, ReportRenderer, SchedulerHooks
from llmb.plugins.addresses import is_file_address
from llmb.plugins.find_plugins import PACK, PluginEntry, choose_entry, find_plugins, plugin_names
from llmb.plugins.guard import Plugin, decoding
from llmb.plugins.installed_names import GROUPS
from llmb.plugins.load import load
from llmb.plugins.misspelt_groups import MisspeltGroup, find_misspelt_groups
from llmb.plugins.read_pack import check_pack, read_accelerators, read_pack_signatures
from llmb.plugins.recipe_files import RecipeFiles, addresses_of, find_recipe
from llmb.values.errors import Fault, LlmbError, PluginError, PluginWarning, RecipeError, collect_errors, located
from llmb.values.failure import Signature
from llmb.values.model import Accelerator
from llmb.values.recipe import Recipe
from llmb.values.steps import LogParser
from llmb.values.types.check_types import decode_fields

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class PluginInfo:
    """An installed plugin: its name in the TOML, its distribution and its hooks. ``error`` is None if it works."""

    name: str
    kind: str
    distribution: str
    version: str
    hooks: tuple[str, ...]
    error: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the plugin as ``llmb plugins --json`` prints it."""
        return attrs.asdict(self)


def list_plugins() -> list[PluginInfo]:
    """Load all installed plugins and describe them, sorted by kind and name. A broken plugin affects no other."""
    return PluginRegistry().plugins()


class PluginRegistry:
    """The plugins and recipes of one command, each loaded when it is first used.

    A plugin that the user named and that is missing or broken is a PluginError. Another broken plugin is left out with
    a PluginWarning, so that it breaks no run.
    """

    def __init__(self) -> None:
        self._loaded: dict[PluginEntry, Plugin | PluginError] = {}
        self._named: dict[tuple[str, str], Plugin] = {}
        self._recipes: dict[str, Recipe] = {}
        self._recipe_files = RecipeFiles()
        self._with_valid_settings: set[tuple[str, str]] = set()
        self._signatures: dict[str, list[Signature]] = {}

    @functools.cached_property
    def installed(self) -> Sequence[PluginEntry]:
        """The installed plugins, searched once."""
        return find_plugins()

    def framework(self, name: str) -> FrameworkHooks[Any]:
        """Return the framework of this name, the part of a recipe's address before the slash."""
        return cast("FrameworkHooks[Any]", self._load_named("framework", name))

    def scheduler(self, name: str) -> SchedulerHooks[Any]:
        """Return the scheduler of this name, the value of ``target.scheduler``."""
        return cast("SchedulerHooks[Any]", self._load_named("scheduler", name))

    def plugins(self) -> list[PluginInfo]:
        """Load all installed plugins, and return the hooks or the error of each.

        An entry point in a group that resembles one of llmb's is an error, because nothing else reports it.
        """
        misspelt = (each for each in find_misspelt_groups() if each.group.startswith("llmb"))
        return [*map(self._describe, self.installed), *map(_describe_misspelt, misspelt)]

    def recipe(self, address: str) -> Recipe:
        """Return a recipe, like `load_recipe`. Raise RecipeError or PluginError."""
        if address not in self._recipes:
            recipe = find_recipe(address, self.installed, self._recipe_files)
            self._recipes[address] = recipe
            if not is_file_address(address):  # a file may have the name of an installed recipe
                self._recipes[recipe.address] = recipe
        return self._recipes[address]

    def check_settings(self, framework: str, address: str) -> None:
        """Raise RecipeError if the recipe at ``address`` has settings that the framework does not accept.

        A published point has the merged settings of all tables. A recipe with a rule has only those of [framework].
        """
        plugin = self.framework(framework)
        if plugin.settings is None or (framework, address) in self._with_valid_settings:
            return
        recipe = self.recipe(address)
        tables = dict.fromkeys(point.settings for point in recipe.points) or (recipe.settings,)
        with decoding(plugin, "settings"):
            errors = [error for table in tables for error in decode_fields(table, plugin.settings, "framework")[1]]
        if errors:
            raise RecipeError(*located(dict.fromkeys(errors), recipe.file))
        self._with_valid_settings.add((framework, address))

    def recorded_address(self, address: str) -> str:
        """Return the exact address that an address in the record of a run means, so that a rerun uses the same release.

        Return the same address if there is no recipe, and for a file, which has no releases.
        """
        if is_file_address(address):
            return address
        with suppress(LlmbError):
            return find_recipe(address, self.installed, self._recipe_files, recorded=True).address
        return address

    def recipes(self) -> list[Recipe]:
        """Return all recipes, sorted by address. One that cannot be read is left out with a PluginWarning."""
        recipes: list[Recipe] = []
        errors: list[Fault] = []
        for address in addresses_of(self.installed):
            with collect_errors(errors, LlmbError):
                recipes.append(self.recipe(address))
        for fault in dict.fromkeys(errors):
            warn_left_out(fault)
        return recipes

    def accelerators(self) -> list[Accelerator]:
        """Return the GPU types that extensions and packs add to core's table, in the order of their names."""
        found = self._call_all("extension", lambda extension: extension.accelerators())
        return [*found, *(each for _, accelerators in self._pack_accelerators for each in accelerators)]

    def accelerator_places(self, name: str) -> list[str]:
        """Return the packs that define a GPU type. More than one is an error for a run on this type."""
        packs = self._pack_accelerators
        return [pack.provider for pack, accelerators in packs if name in {each.name for each in accelerators}]

    @functools.cached_property
    def _pack_accelerators(self) -> list[tuple[PluginEntry, list[Accelerator]]]:
        return list(self._read_packs(read_accelerators))

    def _read_packs(self, read: Callable[[PluginEntry], list[T]]) -> Iterator[tuple[PluginEntry, list[T]]]:
        """Yield what each pack contains. A pack that cannot be read is left out with a PluginWarning."""
        for pack in self.installed:
            if pack.kind == PACK:
                try:
                    yield pack, read(pack)
                except PluginError as error:
                    warn_left_out(error)

    def signatures(self, framework: str) -> list[Signature]:
        """Return the causes of failure that the framework, all installed schedulers and the extensions add.

        A plugin whose hook fails is left out with a warning, because a failed run needs its result nevertheless.
        """
        if framework not in self._signatures:
            choose_entry("framework", framework, self.installed)  # raises if it is not installed
            found = self._call_all("framework", lambda plugin: plugin.diagnose(), names=[framework])
            found += self._call_all("scheduler", lambda plugin: plugin.diagnose())
            found += self._call_all("extension", lambda plugin: plugin.diagnose())
            found += [each for _, signatures in self._read_packs(read_pack_signatures) for each in signatures]
            self._signatures[framework] = found
        return self._signatures[framework]

    def report_renderer(self, suffix: str) -> ReportRenderer:
        """Return the renderer of reports in files with this suffix. Raise PluginError unless exactly one exists."""
        offered = self._call_all("extension", lambda plugin: [(plugin, *each) for each in renderers_of(plugin).items()])
        found = [(plugin, render) for plugin, known, render in offered if known == suffix]
        if len(found) > 1:
            providers = " and ".join(plugin.entry.provider for plugin, _ in found)
            raise PluginError(f"{suffix} reports are provided by {providers}; uninstall all except one")
        if not found:
            raise PluginError(_missing_renderer(suffix, sorted({known for _, known, _ in offered})))
        return found[0][1]

    def message_parsers(self) -> list[LogParser]:
        """Return a new parser of each installed scheduler's own messages, for logs without a record."""
        parsers = self._call_all("scheduler", lambda plugin: [plugin.parse_log(run=None)])
        return [parser for parser in parsers if parser is not None]

    def _describe(self, entry: PluginEntry) -> PluginInfo:
        hooks: tuple[str, ...] = ()
        error = None
        try:
            hooks = check_pack(entry) if entry.kind == PACK else self._load(entry).hooks
            choose_entry(entry.kind, entry.name, self.installed)
        except PluginError as found:
            error = str(found)
        return PluginInfo(
            name=entry.name,
            kind=entry.kind,
            distribution=entry.distribution,
            version=entry.version,
            hooks=hooks,
            error=error,
        )

    def _load_named(self, kind: str, name: str) -> Plugin:
        """Choose and load a plugin. A sweep names the same few plugins thousands of times."""
        if (kind, name) not in self._named:
            self._named[kind, name] = self._load(choose_entry(kind, name, self.installed))
        return self._named[kind, name]

    def _load(self, entry: PluginEntry) -> Plugin:
        """Load a plugin once. Raises the same PluginError each time if the plugin is broken."""
        if entry not in self._loaded:
            try:
                self._loaded[entry] = load(entry)
            except PluginError as error:
                self._loaded[entry] = error
        plugin = self._loaded[entry]
        if isinstance(plugin, PluginError):
            raise PluginError(*plugin.faults) from plugin.__cause__
        return plugin

    def _call_all(self, kind: str, hook: Callable[[Plugin], Iterable[T]], *, names: Sequence[str] = ()) -> list[T]:
        """Return what a hook returns for all plugins of a kind, or for those of these names.

        A plugin that cannot be loaded or whose hook fails is left out with a PluginWarning.
        """
        results: list[T] = []
        for name in names or plugin_names(kind, self.installed):
            try:
                results += hook(self._load_named(kind, name))
            except LlmbError as error:
                warn_left_out(error)
        return results


def renderers_of(plugin: Plugin) -> Mapping[str, ReportRenderer]:
    """Return the renderers of an extension. Raise PluginError if a suffix can be that of no file."""
    renderers: Mapping[str, ReportRenderer] = plugin.report()
    for suffix in renderers:
        if not re.fullmatch(r"\.[^.A-Z/]+", suffix):
            problem = f"report() returned the suffix {suffix!r}; expected a dot and small letters, such as '.md'"
            raise plugin.guard.error(problem)
    return renderers


def _describe_misspelt(found: MisspeltGroup) -> PluginInfo:
    return PluginInfo(
        name=found.name,
        kind=GROUPS[found.meant],
        distribution=found.distribution,
        version=found.version,
        hooks=(),
        error=f"{found.distribution} has the entry-point group {found.group!r}; expected {found.meant}",
    )


def _missing_renderer(suffix: str, suffixes: Sequence[str]) -> Fault:
    if suffix == ".html":
        remedy = "`pip install llmb-report`, or `pip install ./plugins/report` in a clone of llmb"
        return Fault(message=f"HTML reports need the package llmb-report: {remedy}")
    expected = " or ".join(suffixes) or "an installed extension that writes reports"
    return Fault(message=f"no installed extension writes reports with the suffix {suffix!r}", expected=expected)


def warn_left_out(error: LlmbError | Fault) -> None:
    """Warn that a broken plugin or recipe is ignored, because the command does not need it."""
    for each in error.faults if isinstance(error, LlmbError) else [error]:
        text = f"left out: {' '.join(str(each).split())}"
        warnings.warn(PluginWarning(text), stacklevel=1)  # one place for all: Python shows a text once for each place
