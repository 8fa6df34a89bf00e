"""The software that a job runs in: a container image or a Python environment, and git repositories."""

import functools
from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated, Any, Self

import attrs

from llmb.values.errors import RecipeError
from llmb.values.frozen import freeze
from llmb.values.texts.error_text import invalid_value, unknown_name
from llmb.values.types.check_types import decode_settings, typed_fields
from llmb.values.types.numbers import NonNegativeFloat, PositiveFloat
from llmb.values.types.value_type import accepting, matching
from llmb.values.types.words_and_addresses import ImageAddress, Name, NonEmptyStr, Url, VariableName, Word

Digest = Annotated[str, matching('"sha256:" and 64 hexadecimal digits', "sha256:[0-9a-f]{64}")]
"""The digest of an image."""


def _is_specifier(value: Any) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # not needed without a virtual environment

    try:
        return isinstance(value, str) and len(SpecifierSet(value)) > 0
    except InvalidSpecifier:
        return False


_SPECIFIER = 'a version specifier, such as ">=3.12" or "==3.12.*"'
PythonSpecifier = Annotated[str, accepting(_SPECIFIER, _is_specifier, schema={"type": "string", "pattern": "[<>=~]"})]
"""The versions of Python that an environment may have."""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Image:
    """A container image, with its digest if the publisher states one."""

    ref: ImageAddress
    """Address of the image. Example: ``"registry.example/name:tag"``. A squashfs file on the target has its path."""
    digest: Digest | None = None
    """Digest of the image, which identifies it. Default: none."""

    @property
    def file(self) -> str | None:
        """The path of an image that is a squashfs file on the target, else None."""
        return self.ref if self.ref.startswith("/") else None

    @property
    def with_digest(self) -> str:
        """The complete address for users: a tag such as ``dev`` alone does not identify an image."""
        return f"{self.ref}@{self.digest}" if self.digest else self.ref

    @property
    def pinned(self) -> str:
        """The address with the digest instead of the tag, which may later name another image; else the address."""
        name, _, own_digest = self.ref.partition("@")
        if self.file or not (digest := self.digest or own_digest):
            return self.ref
        folder, slash, last = name.rpartition("/")
        return f"{folder}{slash}{last.partition(':')[0]}@{digest}"

    @property
    def registry(self) -> str:
        """The host at the start of the address; empty for the default registry."""
        first, slash, _ = self.ref.partition("/")
        return first if slash and (set(first) & set(".:") or first == "localhost") else ""


@functools.lru_cache(maxsize=256)
def _shipped_lock(package: str, name: str) -> str:
    """Return the text of a lock file of a package. Raise RecipeError if there is no such file."""
    shipped = {each.name: each for each in files(package).joinpath("environments").iterdir()}
    if name not in shipped:
        raise RecipeError(unknown_name(invalid_value(name), name, sorted(shipped), key="framework.lock"))
    return shipped[name].read_text(encoding="utf-8")


@attrs.frozen(kw_only=True)
class _VenvSettings:
    """The settings of a recipe that describe its Python environment."""

    lock: NonEmptyStr
    python: PythonSpecifier
    space_gb: PositiveFloat = 0.0


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Venv:
    """A Python environment.

    ``lock`` is the text of a requirements file with pinned versions and hashes. ``python`` is the specifier of its
    Python versions, such as ``>=3.12`` or ``==3.12.*``. ``space_gb`` is the disk space that the environment needs, 0 if
    unknown.
    """

    lock: str
    python: PythonSpecifier
    space_gb: NonNegativeFloat = 0.0

    @classmethod
    def shipped(cls, package: str, settings: Mapping[str, Any]) -> Self | None:
        """Return the environment of a recipe's settings: ``lock``, ``python``, and ``space_gb`` if it is there.

        ``lock`` is the name of a file in the package's folder ``environments``. Return None if the settings have none
        of these keys: the job then runs in an environment that the user prepares. Raise RecipeError for invalid
        settings.
        """
        names = [field.name for field in attrs.fields(_VenvSettings)]
        if not (stated := {name: settings[name] for name in names if name in settings}):
            return None
        own = decode_settings(stated, _VenvSettings, "framework")
        return cls(lock=_shipped_lock(package, own.lock), python=own.python, space_gb=own.space_gb)


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Repository:
    """A git repository at one commit, which llmb fetches once into the cache of the target."""

    name: Name
    """Name of the folder in the cache."""
    url: Url
    """Address from which git fetches the commit."""
    commit: Word
    """Commit, as git names it."""

    @staticmethod
    def of(settings: Mapping[str, Any]) -> "Repository | None":
        """Return the table ``repository`` of a recipe's settings, or None if it has none.

        Raise RecipeError if the table is invalid.
        """
        return _repository(freeze(settings["repository"])) if "repository" in settings else None

    def folder(self, cache: str) -> str:
        """Return the path of the files at this commit."""
        return f"{cache}/repositories/{self.name}-{self.commit[:12]}"


@functools.lru_cache(maxsize=256)
def _repository(table: object) -> Repository:
    """Decode a table ``repository``, once for all runs of a recipe."""
    return decode_settings(table, Repository, "framework.repository")


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Environment:
    """The software that a job needs. ``secrets`` are names of the user's environment variables, never their values."""

    base: Image | Venv | None = None
    repositories: tuple[Repository, ...] = ()
    secrets: tuple[VariableName, ...] = ()
