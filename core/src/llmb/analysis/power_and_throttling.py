"""Summary of the samples that sample_gpus.sh took: power and energy, and GPUs that run hot, slow or throttled.

Only busy samples count, so that start-up and exit do not lower the mean power. Means leave out the samples beside a
pause: nvidia-smi reports the mean power of a second, in which a GPU that starts or stops was partly idle.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self

import attrs

from llmb.analysis.measuring_window import mean_of_known
from llmb.analysis.metrics import Metrics

BUSY_PERCENT = 50
"""The utilisation of a GPU from which a sample counts as busy."""

PAUSE_SAMPLES = 3
"""The number of samples without work after which the next busy sample begins a busy time."""

THROTTLED_SHARE = 0.01
"""The share of busy samples with a reason of `THROTTLING` from which a GPU counts as throttled."""

SLOW_SHARE = 0.05
"""How far the mean SM clock of a slow GPU is below the median of all GPUs, as a share."""

HOT_C = 15
"""How far the mean temperature of a hot GPU is above the median of all GPUs, in degrees Celsius."""

THROTTLING: Mapping[int, str] = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Harmful bits of nvidia-smi's clocks_event_reasons.active.

Source: https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html. The software power cap (0x04) is not
among them, because most GPUs reach it in a training.
"""

MAX_ERRORS = 20
"""Different messages of the tool that are kept."""

JOULES_PER_KWH = 3.6e6

Quantity = Literal["power_w", "sm_clock_mhz", "temperature_c"]


@attrs.frozen(kw_only=True)
class GpuProblem:
    """A GPU, by its index on its node, that differs from the others or reports errors."""

    node: str
    gpu: int
    problem: Literal["throttled", "hot", "slow", "ECC errors", "NVLink errors"]
    detail: str


@attrs.frozen(kw_only=True)
class Telemetry:
    """Means over the busy samples of all GPUs, the energy that follows from them, and the GPUs with problems.

    Means leave out the samples at the beginning and the end of a busy time, between pauses of at least `PAUSE_SAMPLES`.
    ``samples`` is the number of all busy samples. ``power_w`` is the mean power of one GPU. Energies are those of the
    GPUs alone: this mean times the GPUs of the run. ``cpu_share`` is the CPU time that sampling took, as a share of one
    core, on the node where it took most. ``errors`` are messages of the tool, with the node.
    """

    nodes: int
    gpus: int
    samples: int
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    energy_per_step_j: float | None = None
    tokens_per_joule: float | None = None
    kwh_per_1t_tokens: float | None = None
    cpu_share: float | None = None
    problems: tuple[GpuProblem, ...] = ()
    errors: tuple[str, ...] = ()


@attrs.frozen
class _Sample:
    """The values of one sample of a GPU, None for ``[N/A]``. Means are taken of ``values``. ``reasons`` are bits."""

    values: Mapping[Quantity, float | None]
    reasons: int
    is_busy: bool
    ecc_errors: float | None

    @classmethod
    def of(cls, fields: Sequence[str]) -> Self:
        """Return a sample: the fields of sample_gpus.sh after the index. Raise ValueError if they are damaged."""
        power, clock, _, temperature, reasons, _, utilisation, _, ecc = fields
        percent = _number(utilisation)
        return cls(
            values={"power_w": _number(power), "sm_clock_mhz": _number(clock), "temperature_c": _number(temperature)},
            reasons=int(reasons, 16) if reasons.startswith("0x") else 0,
            is_busy=percent is None or percent >= BUSY_PERCENT,
            ecc_errors=_number(ecc),
        )


@attrs.define
class _Sums:
    """Sums of the known values of some samples of one GPU, and their numbers."""

    samples: int = 0
    totals: defaultdict[Quantity, float] = attrs.field(factory=lambda: defaultdict(float))
    counts: Counter[Quantity] = attrs.field(factory=Counter)

    def add(self, sample: _Sample) -> None:
        self.samples += 1
        for quantity, value in sample.values.items():
            if value is not None:
                self.totals[quantity] += value
                self.counts[quantity] += 1

    def mean(self, quantity: Quantity) -> float | None:
        """Return the mean, or None without a value."""
        return self.totals[quantity] / self.counts[quantity] if self.counts[quantity] else None


@attrs.define
class _Gpu:
    """The samples of one GPU: all busy ones, and those of them that are not beside a pause."""

    busy: _Sums = attrs.field(factory=_Sums)
    inside: _Sums = attrs.field(factory=_Sums)
    reasons: Counter[int] = attrs.field(factory=Counter)
    last: _Sample | None = None
    last_follows_pause: bool = False
    idle: int = 0
    last_ecc: float | None = None
    ecc_errors: float = 0.0  # rises of the counter, which a reset of the GPU sets to 0

    def add(self, sample: _Sample) -> None:
        if sample.ecc_errors is not None:
            if self.last_ecc is not None:
                self.ecc_errors += max(0.0, sample.ecc_errors - self.last_ecc)
            self.last_ecc = sample.ecc_errors
        if not sample.is_busy:
            self.idle += 1
            return
        self.busy.add(sample)
        self.reasons.update(bit for bit in THROTTLING if sample.reasons & bit)
        follows_pause = self.last is None or self.idle >= PAUSE_SAMPLES
        if self.last and not follows_pause and not self.last_follows_pause:
            self.inside.add(self.last)
        self.last, self.last_follows_pause, self.idle = sample, follows_pause, 0

    def mean(self, quantity: Quantity) -> float | None:
        """Return the mean without the samples beside pauses, unless these are most."""
        return (self.inside if 2 * self.inside.samples >= self.busy.samples else self.busy).mean(quantity)


@attrs.define
class _Samples:
    """All lines of a log of sample_gpus.sh, added up."""

    gpus: dict[tuple[str, int], _Gpu] = attrs.field(factory=dict)
    links: dict[tuple[str, int, str], list[int]] = attrs.field(factory=dict)  # counters at the begin and at the end
    costs: dict[str, float] = attrs.field(factory=dict)
    errors: dict[str, None] = attrs.field(factory=dict)

    def add(self, line: str) -> None:
        """Add a line. An incomplete one, such as the last one of a killed job, is ignored."""
        node, kind, *values = line.split(", ")
        if kind == "gpu" and len(values) == 11 and values[1].isdecimal():
            self.gpus.setdefault((node, int(values[1])), _Gpu()).add(_Sample.of(values[2:]))
        elif kind in ("link", "link end") and len(values) == 4:
            gpu, link, name, text = values
            count = int(text)  # before the entry is created, because the line may be damaged
            counters = self.links.setdefault((node, int(gpu), f"link {link}: {name}"), [0, 0])
            counters[1 if kind == "link end" else 0] = count
        elif kind == "cost" and len(values) == 2:
            self.costs[node] = float(values[0]) / max(1.0, float(values[1]))
        elif kind in ("error", "gpu") and len(values) == 1 and len(self.errors) < MAX_ERRORS:
            self.errors[f"{node}: {values[0]}"] = None


def summarise_telemetry(lines: Iterable[str], metrics: Metrics | None, gpus: int) -> Telemetry:
    """Return the summary of a log of sample_gpus.sh, for a run with these metrics on so many GPUs."""
    samples = _Samples()
    for line in lines:
        try:
            samples.add(line.rstrip("\n"))
        except ValueError:  # two lines that were written at the same time
            continue
    busy = {place: gpu for place, gpu in samples.gpus.items() if gpu.busy.samples}
    power_w = mean_of_known(gpu.mean("power_w") for gpu in busy.values())
    return Telemetry(
        nodes=len({node for node, _ in busy}),
        gpus=len(busy),
        samples=sum(gpu.busy.samples for gpu in busy.values()),
        power_w=power_w,
        sm_clock_mhz=mean_of_known(gpu.mean("sm_clock_mhz") for gpu in busy.values()),
        temperature_c=mean_of_known(gpu.mean("temperature_c") for gpu in busy.values()),
        **_energies(power_w * gpus if power_w else None, metrics),
        cpu_share=max(samples.costs.values(), default=None),
        problems=tuple(_find_problems(samples, busy)),
        errors=tuple(samples.errors),
    )


def _energies(power_w: float | None, metrics: Metrics | None) -> dict[str, Any]:
    if not power_w or metrics is None or not metrics.tokens_per_s or not metrics.step_time_s:
        return {}
    tokens_per_joule = metrics.tokens_per_s / power_w
    return {
        "energy_per_step_j": power_w * metrics.step_time_s,
        "tokens_per_joule": tokens_per_joule,
        "kwh_per_1t_tokens": 1e12 / tokens_per_joule / JOULES_PER_KWH,
    }


def _find_problems(samples: _Samples, busy: Mapping[tuple[str, int], _Gpu]) -> Iterator[GpuProblem]:
    for (node, index), gpu in sorted(busy.items()):
        for bit, reason in THROTTLING.items():
            share = gpu.reasons[bit] / gpu.busy.samples
            if share >= THROTTLED_SHARE:
                detail = f"{100 * share:.0f} % of the time ({reason})"
                yield GpuProblem(node=node, gpu=index, problem="throttled", detail=detail)
    yield from _find_outliers(busy)
    for (node, index), gpu in sorted(samples.gpus.items()):
        if errors := int(gpu.ecc_errors):
            yield GpuProblem(node=node, gpu=index, problem="ECC errors", detail=f"{errors} uncorrected")
    for (node, index, name), (begin, end) in sorted(samples.links.items()):
        if end > begin:
            yield GpuProblem(node=node, gpu=index, problem="NVLink errors", detail=f"{name} +{end - begin}")


def _find_outliers(busy: Mapping[tuple[str, int], _Gpu]) -> Iterator[GpuProblem]:
    """Yield the GPUs that are slower or hotter than most GPUs of the run."""
    for quantity in ("sm_clock_mhz", "temperature_c"):
        means = {place: mean for place, gpu in sorted(busy.items()) if (mean := gpu.mean(quantity))}
        usual = statistics.median(means.values()) if means else 0.0
        for (node, index), mean in means.items():
            if quantity == "sm_clock_mhz" and mean < (1 - SLOW_SHARE) * usual:
                detail = f"SM clock {mean:.0f} MHz, median {usual:.0f} MHz"
                yield GpuProblem(node=node, gpu=index, problem="slow", detail=detail)
            elif quantity == "temperature_c" and mean >= usual + HOT_C:
                detail = f"{mean:.0f} C, median {usual:.0f} C"
                yield GpuProblem(node=node, gpu=index, problem="hot", detail=detail)


def _number(text: str) -> float | None:
    """Return the number, or None for ``[N/A]`` and the like."""
    try:
        return float(text)
    except ValueError:
        return None
