"""The public names of llmb, and what it costs to import them."""

from __future__ import annotations

import ast
import collections.abc
import inspect
import subprocess
import sys
import textwrap
import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Annotated, TypeVar, get_origin

import pytest

import llmb

HEAVY = {
    "ahocorasick_rs",
    "cattrs",
    "jinja2",
    "pluggy",
    "rich",
    "tomli_w",
    "typer",
    "fabric",
    "packaging",
    "sqlite3",
    "numpy",
}


def names_by_module() -> Iterator[tuple[str, str]]:
    """Yield each module in ``__init__.pyi`` with each name that is imported from it."""
    tree = ast.parse(Path(llmb.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    for node in tree.body[2:]:  # after the docstring and `__all__`
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name  # a type checker takes no other import for a public name
            yield f"llmb.{node.module}", alias.name


def test_every_public_name_is_the_one_of_its_module() -> None:
    table = list(names_by_module())
    assert llmb.__all__ == sorted(name for _, name in table) == dir(llmb)
    for module, name in table:
        assert getattr(llmb, name) is getattr(import_module(module), name)


def test_the_help_of_a_function_shows_plain_defaults() -> None:
    functions = [value for name in llmb.__all__ if inspect.isfunction(value := getattr(llmb, name))]
    signatures = [f"{each.__name__}{inspect.signature(each)}" for each in functions]
    assert len(signatures) > 50
    assert [each for each in signatures if " at 0x" in each] == []


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="llmb attribute nothing"):
        llmb.nothing  # type: ignore[attr-defined]  # noqa: B018  # that is what is tested


def annotations_of(name: str) -> Iterator[tuple[str, str, object]]:
    """Yield each annotation of a public function or class: its place, its text, and the module that contains it."""
    value = getattr(llmb, name)
    for each in inspect.getmro(value) if inspect.isclass(value) else [value] * inspect.isfunction(value):
        if each.__module__.startswith("llmb."):
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            for member in definition.body if isinstance(definition, ast.ClassDef) else [definition]:
                for text in _annotations(member):
                    yield f"{name}: {ast.unparse(member).partition(chr(10))[0]}", text, sys.modules[each.__module__]


def _annotations(definition: ast.stmt) -> Iterator[str]:
    """Yield the annotations of a public field or function, without quotes."""
    found: list[ast.expr | None] = []
    if isinstance(definition, ast.AnnAssign) and not ast.unparse(definition.target).startswith("_"):
        found = [definition.annotation]
    if isinstance(definition, ast.FunctionDef) and not definition.name.startswith("_"):
        arguments = [node for node in ast.walk(definition.args) if isinstance(node, ast.arg)]
        found = [*(each.annotation for each in arguments), definition.returns]
    for each in filter(None, found):
        yield each.value if isinstance(each, ast.Constant) and isinstance(each.value, str) else ast.unparse(each)


def is_ours(value: object, name: str) -> bool:
    """Check whether a name in an annotation is defined by llmb: a class, or an alias of a type."""
    if isinstance(value, TypeVar) or value is None or get_origin(value) is Annotated:  # checkers see what is annotated
        return False
    if inspect.isclass(value):
        return value.__module__.startswith("llmb")
    return not hasattr(typing, name) and not hasattr(collections.abc, name)


def test_the_types_in_public_signatures_are_public() -> None:
    private = [
        f"{where}: {text}"
        for name in llmb.__all__
        for where, text, module in annotations_of(name)
        for word in (node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))
        if word not in llmb.__all__ and is_ours(getattr(module, word, None), word)
    ]
    assert private == []


TAKE_OPTIONAL_BY_PLACE = {
    "feed",  # a block, and the log that contains it
    "__getattr__",  # of attrs, for cached properties
}


def optional_by_place(function: FunctionType) -> list[str]:
    """Return the optional arguments after the first argument that can be given by position."""
    by_place = [
        each for each in inspect.signature(function).parameters.values() if each.kind == each.POSITIONAL_OR_KEYWORD
    ]
    first = 2 if by_place[:1] and by_place[0].name in ("self", "cls") else 1
    return [each.name for each in by_place[first:] if each.default is not each.empty]


def test_optional_arguments_are_given_by_name() -> None:
    wrong = {}
    for name in llmb.__all__:
        value = getattr(llmb, name)
        members = vars(value).items() if inspect.isclass(value) else [("", value)]
        for member, each in members:
            function = getattr(each, "__func__", each)
            if member not in TAKE_OPTIONAL_BY_PLACE and inspect.isfunction(function):
                wrong[f"{name}.{member}"] = optional_by_place(function)
    assert {place: names for place, names in wrong.items() if names} == {}


def imported_by(code: str) -> set[str]:
    """Return the modules that a new interpreter imports for this code, beyond those that it starts with."""
    script = (
        f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def test_importing_llmb_imports_nothing_else() -> None:
    modules = imported_by("import llmb")
    assert {module for module in modules if module.startswith("llmb")} == {"llmb"}
    assert packages(modules) & (HEAVY | {"attrs", "attr"}) == set()


def test_importing_the_command_line_imports_no_heavy_module() -> None:
    assert packages(imported_by("import llmb.cli.app")) & (HEAVY - {"typer", "rich"}) == set()


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_no_plugin(option: str) -> None:
    modules = imported_by(
        f"import sys\nfrom llmb.cli.app import main\nsys.argv = ['llmb', '{option}']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    assert packages(modules) & (HEAVY - {"typer", "rich"}) == set()
    assert packages(modules) & {"llmb_local", "llmb_maxtext"} == set()
    own = {module for module in modules if module.startswith(("llmb.plugins.", "llmb.drive", "llmb.spec"))}
    assert own <= {"llmb.plugins.installed_names"}
    assert ("importlib.metadata" in modules) == (option == "--version")  # which lists the plugins


def test_a_command_imports_no_library_that_it_does_not_need() -> None:
    modules = imported_by("from llmb.cli.app import execute\nexecute(['runs'])")
    assert packages(modules) & {"cattrs", "fabric", "jinja2", "paramiko", "pydantic"} == set()


@pytest.mark.parametrize("kind", [str, Path])
def test_one_log_is_parsed_without_a_list_around_it(tmp_path: Path, kind: type[str | Path]) -> None:
    log = tmp_path / "train.log"
    log.write_text("completed step: 3, seconds: 3.585, TFLOP/s/device: 288.187, loss: 1.977\n")
    assert [step.step for step in llmb.parse(kind(log), framework="maxtext").series.steps] == [3]


def test_a_log_without_a_framework_names_the_function_that_finds_it(tmp_path: Path) -> None:
    with pytest.raises(llmb.SpecError, match=r"llmb\.recognise_framework\(\)"):
        llmb.parse(tmp_path / "train.log")
