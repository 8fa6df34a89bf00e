"""The framework plugin that a file declares."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from llmb.hookspecs import FrameworkHooks, hookimpl
from llmb.plugins.declared.check_tables import ARGS
from llmb.plugins.declared.closest_line import describe_difference
from llmb.plugins.declared.command import SCRIPT, command_script, find_unused, training_phase
from llmb.plugins.declared.framework_tables import OptionTable
from llmb.plugins.declared.log_parser import DeclaredLog
from llmb.plugins.declared.read_file import read_file
from llmb.values.environment import Environment, Image, Venv
from llmb.values.errors import SpecError
from llmb.values.failure import Signature
from llmb.values.job import Job
from llmb.values.log_file_names import LogFiles
from llmb.values.model import Model
from llmb.values.run import Run
from llmb.values.steps import LogParser


class DeclaredFramework(FrameworkHooks[Any]):
    """A framework whose command, log and recipes are the data of a file."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raise PluginError with all its errors."""
        self._read = read_file(path)
        file = self._read.file
        self.options = options_class(file.options)
        self.window = file.log.window
        self.model_keys = (*(field.name for field in attrs.fields(Model)), "pipeline_layout")  # see `find_unused`
        self.log_files = LogFiles(**attrs.asdict(file.log.files))

    @hookimpl
    def prepare_env(self, run: Run[Any]) -> Environment:
        """Return the image or virtual environment, the repository and the secrets of the file."""
        file = self._read.file
        base: Image | Venv | None = run.image or as_image(file.image)
        if file.venv:
            base = Venv(lock=self._read.texts[file.venv.lock], python=_as_specifier(file.venv.python))
        return Environment(base=base, repositories=(file.repository,) if file.repository else (), secrets=file.secrets)

    @hookimpl
    def build_job(self, run: Run[Any]) -> Job:
        """Return the job that runs the command. Raise SpecError for each value that the file does not use."""
        file = self._read.file
        if errors := [*find_unused(file, run)]:
            raise SpecError(*errors)
        files = {f"{run.paths.run}/{name}": text for name, text in self._read.texts.items() if name in file.files}
        files[f"{run.paths.run}/{SCRIPT}"] = command_script(file, run)
        return run.job((training_phase(file, run),), files=files)

    @hookimpl
    def parse_log(self, run: Run[Any] | None) -> LogParser:
        """Return a parser of the lines of [log]."""
        return DeclaredLog(self._read.log, run)

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the causes of [[diagnose]]."""
        source = self._read.path.name
        return [
            Signature(needle=each.text, cause=each.cause, remedy=each.remedy, source=source)
            for each in self._read.file.diagnose
        ]

    @hookimpl
    def explain_missing_steps(self, lines: Sequence[str]) -> str:
        """Return where the closest line of the log differs from each line of [log]."""
        return describe_difference(self._read.log, lines)


def as_image(image: str | Image | None) -> Image | None:
    """Return an image that is written as its address or as a table."""
    return Image(ref=image) if isinstance(image, str) else image


def _as_specifier(python: str) -> str:
    """Return the version specifier of a Python version such as "3.12". A specifier is returned unchanged."""
    return f"=={python}.*" if re.fullmatch(r"\d+\.\d+", python) else python


def options_class(options: Mapping[str, OptionTable]) -> type[Any]:
    """Return the class of [framework]: a field for each option, with the type of its default, and ``args``."""
    fields = {
        name: attrs.field(default=each.default, metadata={"comparable": each.comparable, "help": each.help})
        for name, each in options.items()
    }
    types = {name: Literal[each.choices] if each.choices else _type(each.default) for name, each in options.items()}
    body = {**fields, ARGS: attrs.field(default=()), "__annotations__": {**types, ARGS: tuple[str, ...]}}
    return attrs.frozen(kw_only=True)(type("Options", (), {**body, "__doc__": "The options of [framework]."}))


def _type(default: Any) -> Any:
    """Return the type of a default. The items of a list have the type of its first item."""
    if isinstance(default, tuple):
        return tuple[type(default[0]) if default else str, ...]  # type: ignore[misc]  # computed
    return type(default)
