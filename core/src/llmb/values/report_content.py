"""The content of a report on recorded runs, as renderers of extensions get it."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from llmb.values.frozen import FrozenMap, freeze
from llmb.values.run_states import END_STATES, Verdict
from llmb.values.texts.error_text import counted


@attrs.frozen(kw_only=True)
class ReportedRun:
    """One run of a report.

    ``result`` is the object that ``llmb show --json`` prints for the run. Keys may be absent in records of other
    versions. ``steps`` are columns of equal length, such as ``step`` and ``time_s``. ``settings`` are the parts of the
    spec and of the job's environment that may explain the speed, by dotted keys.
    """

    result: Mapping[str, Any] = attrs.field(converter=freeze)
    steps: Mapping[str, Sequence[float | None]] = attrs.field(factory=FrozenMap, converter=freeze)
    settings: Mapping[str, str] = attrs.field(factory=FrozenMap, converter=freeze)
    framework: str = ""
    release: str = ""
    image: str = ""
    target: str = ""

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.result["run_id"])

    @property
    def ended_incomplete(self) -> bool:
        """True if the run ended in another state than completed."""
        state = self.result.get("state")
        return state in END_STATES and state != "completed"


@attrs.frozen(kw_only=True)
class ReportedSet:
    """The repeats of one run, judged together.

    ``left_out`` has the ids of repeats that do not count; it is empty if none counts. ``step_time_s`` is the mean over
    the others. ``changes`` are the values of the keys that the spec swept, except those that are fields.
    """

    recipe: str
    gpu_type: str
    dtype: str
    gpus: int | None
    variant: str | None
    changes: Mapping[str, str] = attrs.field(factory=FrozenMap, converter=freeze)
    runs: tuple[ReportedRun, ...] = attrs.field(converter=freeze)
    left_out: tuple[str, ...] = attrs.field(converter=freeze)
    step_time_s: float | None
    published_step_time_s: float | None
    step_time_ratio: float | None
    interval: tuple[float, float] | None
    tolerance: float | None
    verdict: Verdict | None
    reason: str

    @property
    def title(self) -> str:
        """The size of the configuration and its changes, such as "64 GPUs, parallelism.tp=2"."""
        unit = "CPU" if self.gpu_type == "cpu" else "GPU"
        size = "unknown size" if self.gpus is None else counted(self.gpus, unit)
        changes = (f"{key}={value}" for key, value in self.changes.items())
        return ", ".join((size, *filter(None, [self.variant]), *changes))


@attrs.frozen(kw_only=True)
class ReportedSetting:
    """One setting of the runs: its values, the most frequent one first, each with the ids of the runs that have it.

    ``kind`` is that of `llmb compare`: image, parallelism, model, arguments, environment, system, hosts or llmb.
    """

    kind: str
    key: str
    values: Mapping[str, tuple[str, ...]] = attrs.field(converter=freeze)


@attrs.frozen(kw_only=True)
class Report:
    """Runs with their steps, verdicts and settings. A setting with several values differs between the runs.

    All text is safe for one line of a terminal, without control characters and known secrets. It is not escaped for
    HTML or XML.
    """

    sets: tuple[ReportedSet, ...] = attrs.field(converter=freeze)
    settings: tuple[ReportedSetting, ...] = attrs.field(converter=freeze)
    llmb_version: str

    @property
    def runs(self) -> tuple[ReportedRun, ...]:
        """The runs of all sets, in their order."""
        return tuple(run for each in self.sets for run in each.runs)
