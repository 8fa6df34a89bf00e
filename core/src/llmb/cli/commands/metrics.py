"""``llmb metrics``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_recipe
from llmb.cli.options import AsJson, Dtype, Gpus, GpuType, OptionsError, Variant

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help="Recipe, as `llmb recipes` lists it.",
        show_default=False,
        autocompletion=complete_recipe,
    ),
]

OPTIONS = {"step_time_s": "--step-time", "tflops_per_gpu": "--tflops-per-gpu"}


def metrics(
    address: Address,
    gpu_type: GpuType,
    dtype: Dtype,
    gpus: Gpus,
    variant: Variant = None,
    step_time: Annotated[float | None, typer.Option("--step-time", metavar="S", help="Step time in seconds.")] = None,
    tflops_per_gpu: Annotated[
        float | None, typer.Option("--tflops-per-gpu", metavar="X", help="Logged TFLOP/s per GPU.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute metrics from a step time, logged TFLOP/s, or both.

    The model, the batch size and the FLOP formula are those of a published configuration.
    """
    if step_time is None and tflops_per_gpu is None:
        raise OptionsError("--step-time, --tflops-per-gpu or both are required")
    try:
        found = llmb.metrics(
            address,
            gpu_type=gpu_type,
            dtype=dtype,
            gpus=gpus,
            variant=variant,
            step_time_s=step_time,
            tflops_per_gpu=tflops_per_gpu,
        )
    except llmb.LlmbError as error:
        raise _with_option_names(error) from None
    if as_json:
        output.print_json(found.as_dict())
        return
    from llmb.cli.views.metrics import print_metrics

    print_metrics(found)


def _with_option_names(error: llmb.LlmbError) -> llmb.LlmbError:
    """Return the error with the names of options instead of those of arguments of the library."""
    import attrs

    return type(error)(*(attrs.evolve(fault, key=OPTIONS.get(fault.key or "", fault.key)) for fault in error.faults))
