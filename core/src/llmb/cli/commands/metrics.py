"""``llmb metrics``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_recipe
from llmb.cli.options import AsJson, Dtype, Gpus, GpuType, OptionsError, Variant, with_option_names

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help="Recipe, as `llmb recipes` lists it.",
        show_default=False,
        autocompletion=complete_recipe,
    ),
]


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
    with with_option_names():
        found = llmb.metrics(
            address,
            gpu_type=gpu_type,
            dtype=dtype,
            gpus=gpus,
            variant=variant,
            step_time_s=step_time,
            tflops_per_gpu=tflops_per_gpu,
        )
    if as_json:
        output.print_json(found.as_dict())
        return
    from llmb.cli.views.metrics import print_metrics

    print_metrics(found)
