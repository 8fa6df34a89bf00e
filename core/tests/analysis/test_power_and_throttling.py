"""Summary of the samples of GPUs: power, energy, and GPUs with problems."""

from __future__ import annotations

import pytest

from llmb import Metrics, Telemetry
from llmb.analysis.power_and_throttling import summarise_telemetry

METRICS = Metrics(
    **dict.fromkeys((field.name for field in Metrics.__attrs_attrs__), None)  # type: ignore[attr-defined]
    | {"step_time_s": 10.0, "tokens_per_s": 4_000.0}
)


def sample(
    node: str = "n1",
    gpu: int = 0,
    *,
    power: object = 650.0,
    clock: object = 1755,
    heat: object = 60,
    reasons: str = "0x0000000000000004",
    busy: object = 100,
    ecc: object = 0,
) -> str:
    """Return a line of sample_gpus.sh."""
    values = (power, clock, 2619, heat, reasons, 71234, busy, 0, ecc)
    return f"{node}, gpu, 2026/11/22 18:00:01.123, {gpu}, {', '.join(map(str, values))}\n"


def summarise(*lines: str, gpus: int = 8) -> Telemetry:
    return summarise_telemetry(lines, METRICS, gpus)


def problems(*lines: str) -> list[tuple[str, int, str, str]]:
    return [(each.node, each.gpu, each.problem, each.detail) for each in summarise(*lines).problems]


def usual() -> list[str]:
    return [sample(gpu=gpu) for gpu in range(8)]


def test_energy_follows_from_the_mean_power_of_busy_gpus() -> None:
    found = summarise(sample(power=600), sample(power=700), sample(gpu=1), sample(gpu=1, power=90, busy=0))
    assert (found.nodes, found.gpus, found.samples) == (1, 2, 3)
    assert found.power_w == 650
    assert found.energy_per_step_j == pytest.approx(650 * 8 * 10)
    assert found.tokens_per_joule == pytest.approx(4_000 / (650 * 8))
    assert found.kwh_per_1t_tokens == pytest.approx(1e12 / (4_000 / 5_200) / 3.6e6)


def test_the_samples_in_which_a_training_starts_and_stops_are_not_in_the_mean() -> None:
    """A training of a few seconds on an H100, sampled each second. Before it, the GPU initialised the model."""
    power = (128.6, 171.7, 127.8, 127.8, 127.8, 253.8, 697.7, 695.5, 690.4, 604.8, 127.1)
    busy = (0, 84, 0, 0, 0, 67, 99, 99, 100, 95, 0)
    found = summarise(*(sample(power=watts, busy=percent) for watts, percent in zip(power, busy, strict=True)))
    assert found.samples == 6
    assert found.power_w == pytest.approx((697.7 + 695.5 + 690.4) / 3)


def test_a_training_with_pauses_is_measured_as_a_whole() -> None:
    throttled = [sample(power=600, reasons="0x0000000000000040")] * 2
    lines = [*throttled, sample(power=90, busy=0)] * 50 + [sample(power=700)] * 3
    assert summarise(*lines).power_w == pytest.approx((99 * 600 + 2 * 700) / 101)  # without the first and the last
    assert problems(*lines) == [("n1", 0, "throttled", "97 % of the time (hardware thermal slowdown)")]


def test_values_that_a_gpu_does_not_have_are_left_out() -> None:
    missing = sample(power="[N/A]", clock="[Not Supported]", heat="N/A", reasons="[N/A]", busy="[N/A]", ecc="[N/A]")
    found = summarise(missing)
    assert (found.power_w, found.sm_clock_mhz, found.energy_per_step_j, found.problems) == (None, None, None, ())
    assert found.samples == 1


@pytest.mark.parametrize(
    ("changes", "problem", "detail"),
    [
        ({"reasons": "0x0000000000000024"}, "throttled", "100 % of the time (software thermal slowdown)"),
        ({"reasons": "0x0000000000000080"}, "throttled", "100 % of the time (power brake)"),
        ({"clock": 1410}, "slow", "SM clock 1410 MHz, median 1755 MHz"),
        ({"heat": 80}, "hot", "80 C, median 60 C"),
    ],
)
def test_a_gpu_that_differs_from_the_others_is_named(changes: dict[str, object], problem: str, detail: str) -> None:
    assert problems(*usual(), sample("n2", 3, **changes)) == [("n2", 3, problem, detail)]  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{}, {"clock": 1700}, {"heat": 74}, {"reasons": "0x0000000000000001"}])
def test_small_differences_and_the_power_cap_are_no_problems(changes: dict[str, object]) -> None:
    assert problems(*usual(), sample("n2", 3, **changes)) == []  # type: ignore[arg-type]


def test_errors_that_were_there_before_the_job_do_not_count() -> None:
    before = [sample(ecc=5), "n1, link, 0, 3, CRC, 7\n"]
    assert problems(*before, sample(ecc=5), "n1, link end, 0, 3, CRC, 7\n") == []
    assert problems(*before, sample(ecc=7), "n1, link end, 0, 3, CRC, 9\n", "n1, link end, 0, 4, Replay, 1\n") == [
        ("n1", 0, "ECC errors", "2 uncorrected"),
        ("n1", 0, "NVLink errors", "link 3: CRC +2"),
        ("n1", 0, "NVLink errors", "link 4: Replay +1"),
    ]


@pytest.mark.parametrize(
    ("counters", "errors"),
    [([3, 3, 0, 0], []), ([3, 4, 0, 2], ["3 uncorrected"]), (["[N/A]", 2, "[N/A]", 3], ["1 uncorrected"])],
)
def test_a_counter_that_a_reset_set_to_zero_loses_and_adds_no_errors(counters: list[object], errors: list[str]) -> None:
    assert [detail for *_, detail in problems(*(sample(ecc=count) for count in counters))] == errors


def test_messages_of_the_tool_are_kept_once_with_their_node() -> None:
    lost = "n1, gpu, Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.\n"
    found = summarise(lost, lost, "n2, error, nvidia-smi not found\n")
    assert len(found.errors) == 2
    assert found.errors[1] == "n2: nvidia-smi not found"


@pytest.mark.parametrize(
    "line", ["", "\n", "n1", sample()[:40], "n1, link, x, 1, CRC, 2\n", sample(reasons="0xzz"), "n1, cost, a, b\n"]
)
def test_damaged_lines_are_ignored(line: str) -> None:
    assert summarise(line, sample()).samples >= 1


def test_the_cost_is_that_of_the_most_expensive_node() -> None:
    assert summarise("n1, cost, 0.30, 600\n", "n2, cost, 0.60, 600\n").cpu_share == pytest.approx(0.001)
