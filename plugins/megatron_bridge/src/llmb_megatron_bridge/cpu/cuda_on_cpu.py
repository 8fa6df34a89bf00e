"""Lets Megatron-Bridge train on a CPU: it never asks whether there is a GPU, and imports what only runs on one.

Its training loop, model, optimizer and log are its own. What is replaced is the device below PyTorch's interface, and
packages that are imported whether they are used or not.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

ABSENT = ("nvidia_resiliency_ext",)
"""Packages that Megatron-Bridge imports and this run does not use."""

ABSENT_BUT_ASKED_FOR = ("transformer_engine", "triton", "datasets", "modelopt", "torch.utils.tensorboard")
"""Likewise; but Megatron-Core asks for them first, and must learn that they are not here."""


def install() -> None:
    """Call it before anything of Megatron is imported."""
    torch.compile = lambda function=None, **_: function or (lambda inner: inner)
    _replace_cuda()
    sys.meta_path.insert(0, _Stubs(ABSENT))
    importlib.import_module("megatron.core.models.gpt.gpt_layer_specs")
    sys.meta_path.insert(0, _Stubs(ABSENT_BUT_ASKED_FOR))
    initialize: Any = importlib.import_module("megatron.bridge.training.initialize")
    initialize.compile_helpers = lambda: None  # they come compiled, and without a makefile
    train: Any = importlib.import_module("megatron.bridge.training.train")
    train.get_tensor_shapes_adjust_fn_for_distillation = lambda *_, **__: None
    _EverythingOnCpu().__enter__()


class _EverythingOnCpu(TorchFunctionMode):
    """Makes every tensor on the CPU, whatever device is asked for."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        asked = dict(kwargs or {})
        if asked.get("device") is not None:
            asked["device"] = torch.device("cpu")
        return func(*args, **asked)


class _NoStream:
    """A stream of a device that does all things at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> _NoStream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait_stream(self, *_: Any) -> None:
        """There is nothing to wait for."""


def _nothing() -> Callable[..., None]:
    return lambda *_, **__: None  # each a function of its own: PyTorch keeps a table of them


def _replace_cuda() -> None:
    cuda: Any = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    for name in ("set_device", "synchronize", "empty_cache", "manual_seed", "reset_peak_memory_stats"):
        setattr(cuda, name, _nothing())
    cuda.Stream = cuda.stream = _NoStream
    cuda.current_stream = lambda *_, **__: _NoStream()
    cuda.default_generators = (torch.default_generator,)
    cuda._lazy_call = lambda call, **_: call()
    cuda.get_rng_state = cuda.random.get_rng_state = lambda *_, **__: torch.get_rng_state()
    cuda.set_rng_state = cuda.random.set_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.nn.Module.cuda = lambda self, *_, **__: self
    plain = torch.Tensor.type
    torch.Tensor.type = lambda self, *args, **kwargs: (
        plain(self, *args, **kwargs) if args or kwargs else "torch.cuda." + plain(self).rpartition(".")[2]
    )


class _StubType(type):
    """A class whose attributes are such classes: enough for annotations, base classes and decorators."""

    def __getattr__(cls, name: str) -> Any:
        return _stub(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args and callable(args[0]) else super().__call__()


def _stub(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _StubType(name, (), {})


class _StubModule(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012  # it marks a package, and nobody changes it

    def __getattr__(self, name: str) -> Any:
        return _stub(name)


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds empty modules of these names, and below them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """A module that has whatever is asked of it."""
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self.names):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        """An empty one."""
        return _StubModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to execute."""
