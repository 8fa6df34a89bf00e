"""Addresses of recipes: ``FRAMEWORK/NAME`` with or without a release, or the path of a declared framework."""

import os
from pathlib import Path


def is_file_address(address: str) -> bool:
    """Check whether a recipe's address or a framework's name is a file: ``./mylm.toml``, ``./mylm.toml#RECIPE``."""
    return address.partition("#")[0].endswith(".toml")


def split_address(address: str) -> tuple[str, str]:
    """Return the framework and the name of the recipe. Either may be empty.

    The framework of a file's address is the path of the file. Both are empty for the path of another file.
    """
    if address.startswith((".", "/", "~")) and not is_file_address(address):
        return "", ""
    framework, _, name = address.partition("#" if is_file_address(address) else "/")
    return framework, name


def framework_of(address: str) -> str:
    """Return the framework of a recipe's address: a name, or the path of the file that declares it."""
    return split_address(address)[0]


def address_in(framework: str, address: str) -> str:
    """Return the address by which a recipe is found: in the file of its framework, if a file declares that."""
    return f"{framework}#{split_address(address)[1]}" if is_file_address(framework) else address


def absolute_address(address: str, folder: Path) -> str:
    """Return a file's address with its absolute path, if the path is relative to ``folder``. Keep other addresses."""
    if not is_file_address(address):
        return address
    path, number_sign, name = address.partition("#")
    return os.path.abspath(folder / os.path.expanduser(path)) + number_sign + name
