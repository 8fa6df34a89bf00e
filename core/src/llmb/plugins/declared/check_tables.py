"""Errors of a declared framework that concern several keys, and of placeholders, files and variables."""

from collections.abc import Iterable, Iterator, Mapping
from keyword import iskeyword

from llmb.plugins.declared.command import SCRIPT, used_names
from llmb.plugins.declared.framework_tables import DeclaredFile, OptionTable
from llmb.plugins.declared.placeholders import OF_PROCESS, OF_RUN, check_text
from llmb.values.errors import Fault
from llmb.values.secret_names import SECRET_VARIABLE, SET_BY_SCHEDULERS
from llmb.values.texts.error_text import format_value, invalid_value

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


def check_tables(file: DeclaredFile) -> Iterator[Fault]:
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
    if file.launch != "torchrun" and file.command[0].removeprefix("{run}/").removeprefix("./") in file.files:
        message = f'llmb copies "{file.command[0]}" without the permission to execute it'
        yield Fault(message=message, key="command[0]", expected='the program that runs it, such as "python3" or "bash"')
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
            expected = f"one of choices: {', '.join(map(format_value, option.choices))}"
            yield Fault(message=invalid_value(option.default), key=f"{key}.default", expected=expected)


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
