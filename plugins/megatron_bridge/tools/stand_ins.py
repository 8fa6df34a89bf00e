"""Stand-ins for packages that need a GPU, so that Megatron-Bridge can be imported on a CPU.

Each attribute of a stand-in is a class without behaviour, which code may derive from, call and subscript.
"""

from __future__ import annotations

import abc
import importlib.abc
import importlib.machinery
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any

PACKAGES = (
    *("apex", "causal_conv1d", "fla", "flash_attn", "mamba_ssm", "megatron.energon", "modelopt", "nemo_run"),
    "megatron.core.inference.contexts.attention_context.triton",  # Triton itself would mislead PyTorch
    *("nvidia_resiliency_ext", "qwen_vl_utils", "transformer_engine", "transformer_engine_torch", "webdataset"),
)


class _Meta(abc.ABCMeta):
    """The type of the stand-in classes, whose attributes are stand-in classes too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _Meta(name, (StandIn,), {"__module__": cls.__module__})
        setattr(cls, name, value)
        return value

    def __or__(cls, _other: object) -> Any:
        return cls

    def __ror__(cls, _other: object) -> Any:
        return cls


class StandIn(metaclass=_Meta):
    """A class without behaviour. A call with a function returns the function, as a decorator does."""

    def __init__(self, *_arguments: object, **_named: object) -> None:
        pass

    def __class_getitem__(cls, _item: object) -> Any:
        return cls

    def __call__(self, *arguments: Any, **_named: object) -> Any:
        """Return the first argument if it is a function, otherwise the stand-in."""
        return arguments[0] if arguments and callable(arguments[0]) else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _Module(types.ModuleType):
    __version__ = "99.0.0"
    __path__: list[str] = []  # noqa: RUF012  # Python reads it of a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _Meta(name, (StandIn,), {"__module__": self.__name__})
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a stand-in for a package that needs a GPU, and for its modules."""
        if any(name == each or name.startswith(f"{each}.") for each in PACKAGES):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return an empty stand-in."""
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave the stand-in empty."""


def install() -> None:
    """Replace the packages, and add to ``typing`` what Megatron-Bridge needs from Python 3.12."""
    sys.meta_path.insert(0, _Finder())
    if not hasattr(typing, "override"):
        typing.override = lambda function: function  # type: ignore[attr-defined]
