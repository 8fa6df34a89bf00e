"""Start torchtitan's training without a GPU.

torchtitan 0.2 selects CUDA if PyTorch reports no accelerator. This module selects the CPU, and replaces three functions
that PyTorch or Triton implement only for GPUs. Model, training loop and log stay unchanged.
"""

from __future__ import annotations

import functools
import importlib
import os
import platform
import resource
import runpy
import types
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule


def main() -> None:
    """Run the training with the arguments of this process."""
    lookup: Any = importlib.import_module("torch._utils")
    device = _cpu()
    lookup._get_available_device_type = lambda: "cpu"
    lookup._get_device_module = lambda *_: device
    _count_on_cpu()
    _reduce_with_sums()
    _permute_without_triton()
    runpy.run_module("torchtitan.train", run_name="__main__", alter_sys=True)


def _cpu() -> types.SimpleNamespace:
    """Return the CPU with those functions of ``torch.cuda`` that torchtitan calls. Memory is that of the process."""
    nothing = dict.fromkeys(("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats"), _do_nothing)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return types.SimpleNamespace(
        **nothing,
        current_device=lambda: 0,
        get_device_name=lambda *_: platform.machine(),
        get_device_properties=lambda *_: types.SimpleNamespace(total_memory=total),
        memory_stats=lambda *_: _memory_stats(),
    )


def _do_nothing(*_: object) -> None:
    pass


def _memory_stats() -> dict[str, int]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"active_bytes.all.peak": peak, "reserved_bytes.all.peak": peak, "num_alloc_retries": 0, "num_ooms": 0}


def _count_on_cpu() -> None:
    """Replace ``torch.histc``, which counts the tokens of each expert: on CPUs it accepts no integers."""
    plain: Any = torch.histc
    torch.histc = lambda values, *args, **kwargs: plain(values.float(), *args, **kwargs).to(values.dtype)


def _reduce_with_sums() -> None:
    """Make FSDP divide gradients before it adds them, because Gloo cannot do both in one operation."""
    fsdp: Any = FSDPModule
    plain = fsdp.set_gradient_divide_factor

    def set_gradient_divide_factor(module: Any, factor: float) -> None:
        module.set_force_sum_reduction_for_comms(True)
        plain(module, factor)

    fsdp.set_gradient_divide_factor = set_gradient_divide_factor


def _permute_without_triton() -> None:
    """Select torchtitan's own CPU implementation of the permutation of tokens, instead of its Triton kernel."""
    moe: Any = importlib.import_module("torchtitan.models.moe.utils")
    moe.generate_permute_indices = functools.partial(moe.generate_permute_indices, use_cpu=True)


main()
