"""Packs: folders with recipes, declared frameworks, accelerators and signatures. Nothing of them is imported."""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import attrs

from llmb.files import file_exists
from llmb.logs.failures.signature_files import decode_signatures
from llmb.plugins.find_plugins import PACK_CONTENT, PluginEntry
from llmb.values.errors import Fault, PluginError, located
from llmb.values.failure import Signature
from llmb.values.frozen import FrozenMap
from llmb.values.model import Accelerator
from llmb.values.texts.error_text import format_value
from llmb.values.toml_files import read_toml
from llmb.values.types.check_types import decode
from llmb.values.types.numbers import PeakFlops, PositiveFloat, PositiveInt
from llmb.values.types.words_and_addresses import NonEmptyStr

NEARLY_EQUAL: Final = 0.85
"""The similarity from which a name is taken for a misspelt name of a file or folder of packs."""

_RECIPE_NAME = re.compile(r"[^\s@/#]+(@[^\s@/#]+)?")


@attrs.frozen(kw_only=True)
class AcceleratorTable:
    """[NAME] of accelerators.toml: a GPU type."""

    gpus_per_node: PositiveInt
    """GPUs of one node."""
    memory_gb: PositiveFloat | None = None
    """Memory of one GPU in GB."""
    peak_flops: Mapping[str, PeakFlops] = FrozenMap()
    """Dense peak of one GPU in FLOP/s, without sparsity, by dtype."""
    dtypes: tuple[str, ...] | None = None
    """The dtypes that the GPU supports, by default those of ``peak_flops``."""
    domain_gpus: PositiveInt | None = None
    """GPUs of an NVLink domain, if a domain is wider than a node."""
    source: NonEmptyStr
    """The origin of the numbers."""


def example_table(name: str) -> str:
    """Return a table of accelerators.toml for a GPU type that llmb does not know, with the values of an example."""
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    return f"""[{key}]
gpus_per_node = 8
memory_gb = 48
peak_flops = {{ bf16 = 362.05e12 }} # dense, without sparsity
source = "the data sheet"
"""


def check_pack(pack: PluginEntry) -> tuple[str, ...]:
    """Return the names of the folders and files that a pack has. Raise PluginError if one cannot be read."""
    folder = pack.folder
    if folder is None or not folder.is_dir():
        raise PluginError(f"{pack}: there is no package {pack.value!r} with data files")
    read_accelerators(pack)
    read_pack_signatures(pack)
    if errors := [*_misspelt_content(folder), *_misplaced_recipes(folder / "recipes")]:
        raise PluginError(*errors)
    return tuple(name.removesuffix(".toml") for name in PACK_CONTENT if (folder / name).exists())


def _misspelt_content(folder: Path) -> Iterator[Fault]:
    """Yield an error for each file or folder with nearly the name of one that llmb reads."""
    for path in sorted(folder.iterdir()):
        near = get_close_matches(path.name, PACK_CONTENT, n=1, cutoff=NEARLY_EQUAL)
        if near and not path.name.startswith(
            near[0]
        ):  # copies such as recipes.old and signatures.toml~ are no mistakes
            yield Fault(message="llmb does not read this name", file=str(path), nearest=near[0])


def _misplaced_recipes(recipes: Path) -> Iterator[Fault]:
    """Yield an error for each recipe outside the folder of a framework, and for each name that is no address."""
    for file in sorted(recipes.glob("*.toml")):
        message = f"no framework has this recipe; move it to recipes/FRAMEWORK/{file.name}"
        yield Fault(message=message, file=str(file))
    for file in sorted(recipes.glob("*/*.toml")):
        name = file.name.removesuffix(".toml")
        if file.parent.name != "shared" and not _RECIPE_NAME.fullmatch(name):
            expected = "NAME.toml or NAME@RELEASE.toml"
            yield Fault(message="invalid name of a recipe", file=str(file), expected=expected)


def read_accelerators(pack: PluginEntry) -> list[Accelerator]:
    """Return the GPU types of a pack. Raise PluginError with all errors of its file."""
    file, tables = _tables(pack, "accelerators.toml")
    found: list[Accelerator] = []
    errors: list[Fault] = []
    for name, table in tables.items():
        value, wrong = decode(table, AcceleratorTable, name)
        errors += wrong
        if not name.strip():
            errors.append(Fault(message=f"invalid GPU type {format_value(name)}", expected="a non-empty string"))
        elif value:
            fields = attrs.asdict(value, recurse=False)
            found.append(Accelerator(name=name, **{key: each for key, each in fields.items() if each is not None}))
    if errors:
        raise PluginError(*located(errors, str(file)))
    return found


def read_pack_signatures(pack: PluginEntry) -> list[Signature]:
    """Return the causes of failure of a pack. Raise PluginError with all errors of its file."""
    file, tables = _tables(pack, "signatures.toml")
    signatures, errors = decode_signatures(tables)
    if errors:
        raise PluginError(*located(errors, str(file)))
    return list(signatures)


def _tables(pack: PluginEntry, name: str) -> tuple[Path, Mapping[str, Any]]:
    """Return a file of a pack and its tables, none if the pack does not have the file. Raise PluginError."""
    file = (pack.folder or Path()) / name
    if pack.folder is None or not file_exists(file):
        return file, {}
    return file, read_toml(file, PluginError)
