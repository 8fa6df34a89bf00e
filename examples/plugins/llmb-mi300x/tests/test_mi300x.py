from __future__ import annotations

import pytest

from llmb_mi300x.plugin import ACCELERATOR, MI300X

COMPUTE_UNITS = 304  # AMD Instinct MI300X data sheet
PEAK_CLOCK_HZ = 2.1e9  # same data sheet
FLOP_PER_CYCLE = {"bf16": 2048, "fp8": 4096}  # per compute unit, dense, matrix cores: AMD CDNA 3 white paper


@pytest.mark.parametrize("dtype", ACCELERATOR.dtypes)
def test_the_peaks_follow_from_the_hardware(dtype: str) -> None:
    hardware = COMPUTE_UNITS * PEAK_CLOCK_HZ * FLOP_PER_CYCLE[dtype]
    assert ACCELERATOR.peak_flops[dtype] == pytest.approx(hardware, rel=1e-4)


def test_the_hooks_return_the_accelerator_and_the_signature() -> None:
    assert [each.name for each in MI300X().accelerators()] == ["mi300x"]
    assert [each.needle for each in MI300X().diagnose()] == ["HIP out of memory"]
