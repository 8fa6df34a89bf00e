"""The tables [profile] and [telemetry] of a spec: captures and samples that a job takes beside the training."""

import attrs

from llmb.values.recipe import ProfileTool
from llmb.values.types.check_types import typed_fields
from llmb.values.types.durations import Duration


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Profile:
    """A capture of a profiling tool. A run with a capture has no verdict."""

    tool: ProfileTool
    """The profiling tool. Example: ``"nsys"``"""
    start_step: int | None = None
    """First step that nsys captures. Default: as published. Example: ``5``"""
    stop_step: int | None = None
    """Step at which nsys stops. Default: as published. Example: ``40``"""
    ranks: tuple[int, ...] | None = None
    """Ranks to capture. Default: the framework's. Example: ``[0, 8]``"""
    gpu_metrics: bool = False
    """Capture the metrics of the GPUs too. Example: ``true``"""
    cpu: bool = False
    """Capture samples of the CPU too. Example: ``true``"""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class TelemetrySettings:
    """The table [telemetry]: the GPUs of each node are sampled every ``interval`` seconds."""

    interval: Duration
    """Time between two samples of each GPU. Example: ``"5s"``"""
