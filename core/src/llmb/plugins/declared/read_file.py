"""Reading a declared framework: the checked tables of the file, and the texts of the files next to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from llmb.paths import config_folder
from llmb.plugins.declared.check_tables import check_tables
from llmb.plugins.declared.framework_tables import DeclaredFile, DeclaredRecipe
from llmb.plugins.declared.log_format import LogFormat, compile_format
from llmb.recipes.read_recipe import read_shared, with_shared
from llmb.values.errors import Fault, PluginError, RecipeError, located
from llmb.values.frozen import FrozenMap
from llmb.values.texts.error_text import UNKNOWN_KEY
from llmb.values.toml_files import parse_toml, read_text
from llmb.values.types.check_types import decode


@attrs.frozen(kw_only=True)
class LoadedFrameworkFile:
    """A declared framework as it was read: its tables, its compiled log, and its text.

    ``texts`` has the texts of the files that it names, and of all shared parts of recipes.
    """

    path: Path
    file: DeclaredFile
    log: LogFormat
    text: str
    texts: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the framework."""
        return self.path.stem

    @property
    def recipes(self) -> Mapping[str, DeclaredRecipe]:
        """The recipes by name. The only recipe of a file has the name of the framework."""
        return {self.name: self.file.recipe} if self.file.recipe else self.file.recipes


def read_file(path: Path) -> LoadedFrameworkFile:
    """Return a declared framework. Raise PluginError with all errors of its file."""
    text = read_text(path, PluginError)
    shared = read_shared(path.parent, PluginError)
    tables = parse_toml(text, str(path), PluginError)
    _check_kind(tables, path)
    if "recipe" in tables:
        tables["recipe"] = _with_shared(tables["recipe"], "recipe", shared, path)
    if isinstance(recipes := tables.get("recipes"), dict):
        tables["recipes"] = {
            name: _with_shared(each, f"recipes.{name}", shared, path) for name, each in recipes.items()
        }
    file, errors = decode(tables, DeclaredFile, "")
    if file is None:
        raise PluginError(*located(map(_with_table, errors), str(path)))
    log, log_errors = compile_format(file.log)
    wrong = [*log_errors, *check_tables(file)]
    names = (*file.files, *((file.venv.lock,) if file.venv else ()))
    texts = {name: _text(path, name, wrong) for name in names}
    if log is None or wrong:
        raise PluginError(*located(wrong, str(path)))
    used = {f"shared/{name}.toml": each for name, each in shared.items()} if "shared" in text else {}
    return LoadedFrameworkFile(path=path, file=file, log=log, text=text, texts=FrozenMap({**texts, **used}))


def _check_kind(tables: Mapping[str, Any], path: Path) -> None:
    """Raise PluginError if a file is a recipe of a framework plugin instead of a framework."""
    if "framework" in tables and not {"command", "log"} & tables.keys():
        folder = f"{config_folder()}/recipes/FRAMEWORK"
        raise PluginError(
            Fault(
                message=f"{path} is a recipe for a framework plugin, and describes no framework",
                expected=f'the file in {folder}, and recipe = "FRAMEWORK/{path.stem}" in the spec',
            )
        )


def _with_table(error: Fault) -> Fault:
    """Return the error of an unknown key at the top of the file, with the table if it is a key of a recipe."""
    keys = [field.name for field in attrs.fields(DeclaredRecipe)]
    is_of_recipe = error.message == UNKNOWN_KEY and error.key in keys
    return attrs.evolve(error, nearest=f"recipe.{error.key}") if is_of_recipe else error


def _with_shared(recipe: Any, key: str, shared: Mapping[str, str], path: Path) -> Any:
    """Return the table of a recipe with its shared files merged into it, as for recipes of other frameworks."""
    if not isinstance(recipe, dict):
        return recipe
    try:
        return _with_sequence(with_shared(recipe, shared, str(path)))
    except RecipeError as error:
        own = [attrs.evolve(each, key=f"{key}.{each.key}") if each.key else each for each in error.faults]
        raise PluginError(*own) from None


def _with_sequence(recipe: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a recipe with its ``seq_len`` in its [model] too, unless the model has one."""
    model = recipe.get("model")
    if not isinstance(model, dict) or "seq_len" not in recipe:
        return recipe
    return {**recipe, "model": {"seq_len": recipe["seq_len"], **model}}


def _text(path: Path, name: str, errors: list[Fault]) -> str:
    try:
        return (path.parent / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not a text in UTF-8 at byte {error.start}"
        errors.append(Fault(message=f"{path.parent / name} cannot be read: {reason}", key="files or venv.lock"))
        return ""
