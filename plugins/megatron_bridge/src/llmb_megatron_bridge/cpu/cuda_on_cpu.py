"""Emulation of CUDA on a CPU for Megatron-Bridge, which neither checks for a GPU nor runs without GPU packages.

The training loop, model, optimizer and log of Megatron-Bridge stay unchanged. This module replaces the device below
PyTorch's interface and packages that Megatron-Bridge imports even if it does not use them.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

ABSENT = ("nvidia_resiliency_ext",)
"""Packages that Megatron-Bridge imports and this run does not use."""

ABSENT_AND_DETECTED = ("transformer_engine", "triton", "datasets", "modelopt", "torch.utils.tensorboard")
"""Further unused packages. Megatron-Core must first detect that they are not installed."""


def install() -> None:
    """Replace CUDA and the missing packages. Call this function before importing any Megatron package."""
    torch.compile = lambda function=None, **_: function or (lambda inner: inner)
    _replace_cuda()
    sys.meta_path.insert(0, _Stubs(ABSENT))
    importlib.import_module("megatron.core.models.gpt.gpt_layer_specs")
    moe: Any = importlib.import_module("megatron.core.transformer.moe.moe_utils")
    moe.te_general_gemm = None  # Megatron-Core 0.16 reads this name even without Transformer Engine
    sys.meta_path.insert(0, _Stubs(ABSENT_AND_DETECTED))
    initialize: Any = importlib.import_module("megatron.bridge.training.initialize")
    initialize.compile_helpers = lambda: None  # the wheel contains them compiled, without a makefile
    train: Any = importlib.import_module("megatron.bridge.training.train")
    train.get_tensor_shapes_adjust_fn_for_distillation = lambda *_, **__: None
    _EverythingOnCpu().__enter__()


class _EverythingOnCpu(TorchFunctionMode):
    """Mode in which PyTorch creates every tensor on the CPU, whatever device the caller passes."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = dict(kwargs or {})
        if options.get("device") is not None:
            options["device"] = torch.device("cpu")
        return func(*args, **options)


class _NoStream:
    """CUDA stream of a device that executes everything synchronously."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> _NoStream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait_stream(self, *_: Any) -> None:
        """Do nothing: all work is already complete."""

    def record_event(self, *_: Any) -> _NoStream:
        """Return an event that is already complete."""
        return self

    def synchronize(self) -> None:
        """Do nothing: all work is already complete."""


def _replace_cuda() -> None:
    cuda: Any = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    for name in ("set_device", "synchronize", "empty_cache", "manual_seed", "reset_peak_memory_stats"):
        setattr(cuda, name, lambda *_, **__: None)  # a function for each name: PyTorch keeps a table of them
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
    """Metaclass of stubs, whose attributes are stubs again: enough for annotations, base classes and decorators."""

    def __getattr__(cls, name: str) -> Any:
        return _stub(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args and callable(args[0]) else super().__call__()


def _stub(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _StubType(name, (), {})


class _StubModule(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012  # marks a package and is never changed

    def __getattr__(self, name: str) -> Any:
        return _stub(name)


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder of stub modules for the packages ``names`` and their submodules."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return the specification of a stub module, or None for another package."""
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self.names):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        """Return a module whose attributes are stubs."""
        return _StubModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: a stub module has no code."""
