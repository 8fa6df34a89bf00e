"""Reading a declared framework: the checked tables of the file, and the texts of the files next to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any

import attrs

from llmb.paths import config_folder
from llmb.plugins.declared.command import SCRIPT, used_names
from llmb.plugins.declared.file import DeclaredFile, DeclaredRecipe, OptionTable
from llmb.plugins.declared.log_format import LogFormat, compile_format
from llmb.plugins.declared.placeholders import OF_PROCESS, OF_RUN, check_text
from llmb.recipes.read_recipe import read_shared, with_shared
from llmb.values.error_text import UNKNOWN_KEY, invalid_value
from llmb.values.errors import Fault, PluginError, RecipeError, located
from llmb.values.frozen import FrozenMap
from llmb.values.toml_files import parse_toml, read_text
from llmb.values.typed import decode
from llmb.values.variable_names import SECRET_VARIABLE, SET_BY_SCHEDULERS

ARGS = "args"
"""The option that always exists: further arguments of the command."""

RESERVED_FILES = frozenset(
    {
        *(SCRIPT, "job.sh", ".secrets", "provenance", "attempts", "failed"),
        # of detached jobs
        *("supervise.sh", "detached.sh", "submit", "started", "queued", "begun", "time_limit"),
        *("ended", "alive", "no_grace", "room", "cancelled", "timed_out"),
    }
)
"""Files that llmb itself writes into the directory of a run, besides logs; `Script.reserved_files` has the others."""

INTERPRETERS = ("python", "python3", "torchrun")
"""First words of a command that torchrun would take for the script."""


@attrs.frozen(kw_only=True)
class ReadFile:
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


def read_file(path: Path) -> ReadFile:
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
    wrong = [*log_errors, *_check(file)]
    names = (*file.files, *((file.venv.lock,) if file.venv else ()))
    texts = {name: _text(path, name, wrong) for name in names}
    if log is None or wrong:
        raise PluginError(*located(wrong, str(path)))
    used = {f"shared/{name}.toml": each for name, each in shared.items()} if "shared" in text else {}
    return ReadFile(path=path, file=file, log=log, text=text, texts=FrozenMap({**texts, **used}))


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


def _check(file: DeclaredFile) -> Iterator[Fault]:
    """Yield the errors of keys that contradict each other, and of placeholders."""
    for index, word in enumerate(file.command):
        yield from check_text(word, f"command[{index}]", (*file.options, ARGS))
    for name, value in file.env.items():
        yield from check_text(value, f"env.{name}", (*file.options, ARGS))
        yield from _check_variable(name)
    yield from _check_files(file.files)
    used = used_names(file)
    if file.image and file.venv:
        yield Fault(message="image and venv cannot be combined", key="venv", expected="one of image and venv")
    if "repository" in used and file.repository is None:
        message = "{repository} is used, but there is no such table"
        yield Fault(message=message, key="repository", expected="a table with name, url and commit")
    if file.launch == "torchrun" and (own := {"rank", "local_rank"} & {*used}):
        message = f"{{{sorted(own)[0]}}} differs between the processes that torchrun starts"
        yield Fault(message=message, key="command", expected="a script that reads RANK and LOCAL_RANK itself")
    if file.launch == "torchrun" and file.command[0].rpartition("/")[2] in INTERPRETERS:
        message = f'torchrun starts Python itself, so "{file.command[0]}" would be the script'
        yield Fault(message=message, key="command[0]", expected="the script, such as train.py")
    if file.recipe and file.recipes:
        yield Fault(
            message="recipe and recipes cannot be combined", key="recipe", expected="[recipe] or [recipes.NAME]"
        )
    yield from _check_options(file.options, used)
    yield from _check_dtypes(file, used)


def _check_files(names: Iterable[str]) -> Iterator[Fault]:
    """Yield an error for a file that would replace one of llmb in the run's directory."""
    for index, name in enumerate(names):
        first = name.partition("/")[0]
        if first in {*RESERVED_FILES, "logs", "nodes"} or first.endswith((".log", ".err", ".partial")):
            message = f'llmb writes "{name}" into the run\'s directory itself'
            yield Fault(message=message, key=f"files[{index}]", expected="another name")


def _check_variable(name: str) -> Iterator[Fault]:
    """Yield an error for a variable that holds a secret or that llmb sets itself."""
    if SECRET_VARIABLE.search(name):
        message = "secrets are not allowed in the file, because llmb records it"
        yield Fault(
            message=message, key=f"env.{name}", expected=f'secrets = ["{name}"], and {name} in your environment'
        )
    elif SET_BY_SCHEDULERS.fullmatch(name):
        yield Fault(message="llmb sets this variable for each task; remove it", key=f"env.{name}")


def _check_options(options: Mapping[str, OptionTable], used: set[str]) -> Iterator[Fault]:
    for name, option in options.items():
        key = f"options.{name}"
        if name in (*OF_RUN, *OF_PROCESS, ARGS):
            yield Fault(message="the name of a value of every run", key=key, expected="another name")
        elif iskeyword(name) or name == "self":  # the class of the options cannot have such a field
            yield Fault(message="a word with a meaning in Python", key=key, expected="another name")
        elif name not in used:
            yield Fault(message="the option has no effect", key=key, expected=f"{{{name}}} in command or env")
        if isinstance(option.default, Mapping):
            expected = "a string, a number, true or false, or a list"
            yield Fault(message=invalid_value(option.default), key=f"{key}.default", expected=expected)
        if option.choices and option.default not in option.choices:
            yield Fault(message="not one of the choices", key=f"{key}.default", expected="one of choices")


def _check_dtypes(file: DeclaredFile, used: set[str]) -> Iterator[Fault]:
    """Yield an error for each recipe with several dtypes that all start the same job."""
    recipes = (
        {"recipe": file.recipe} if file.recipe else {f"recipes.{name}": each for name, each in file.recipes.items()}
    )
    for key, recipe in recipes.items():
        dtypes = dict.fromkeys([*(recipe.dtypes or ()), *(each for point in recipe.points for each in point.dtype)])
        if len(dtypes) > 1 and "dtype" not in used:
            message = f"{', '.join(dtypes)} would start the same job"
            yield Fault(message=message, key=f"{key}.dtypes", expected="one dtype, or {dtype} in command or env")
