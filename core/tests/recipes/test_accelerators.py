"""The table of accelerators."""

from __future__ import annotations

import pytest

from llmb.recipes.accelerators import accelerators


@pytest.mark.parametrize(
    ("name", "dtype", "tflops"),
    [
        ("a100", "bf16", 312),
        ("h100", "bf16", 989),
        ("h100", "fp8", 1979),
        ("b200", "fp8", 4500),
        ("gb200", "fp8", 4900),
        ("gb300", "fp8", 4900),
        ("gb300", "nvfp4", 14700),
        ("l40s", "bf16", 362.05),
        ("h20", "fp8", 296),
        ("mi300x", "bf16", 1307.4),
        ("mi355x", "fp8", 5033.2),
    ],
)
def test_peaks_are_dense_and_in_flops_per_second(name: str, dtype: str, tflops: float) -> None:
    assert accelerators()[name].peak_flops[dtype] == tflops * 1e12


def test_the_table_has_the_published_peaks() -> None:
    assert {name: (gpu.gpus_per_node, gpu.memory_gb, gpu.domain_gpus) for name, gpu in accelerators().items()} == {
        "a100": (8, 80, None),
        "h100": (8, 80, None),
        "h200": (8, 141, None),
        "gh200": (2, 96, None),
        "b200": (8, 180, None),
        "b300": (8, 288, None),
        "gb200": (4, 186, 72),
        "gb300": (4, 288, 72),
        "cpu": (1, None, None),
        "l40s": (8, 48, None),
        "rtxpro6000": (8, 96, None),
        "h20": (8, 96, None),
        "mi300x": (8, 192, None),
        "mi325x": (8, 256, None),
        "mi355x": (8, 288, None),
    }


def test_an_a100_has_no_fp8() -> None:
    assert accelerators()["a100"].dtypes == ("bf16",)


def test_the_peak_of_a_cpu_is_left_to_be_measured() -> None:
    cpu = accelerators()["cpu"]
    assert cpu.dtypes == ("fp32", "bf16")
    assert not cpu.peak_flops


def test_lower_precision_is_faster_and_every_entry_names_its_source() -> None:
    for gpu in accelerators().values():
        peaks = [gpu.peak_flops[dtype] for dtype in ("bf16", "fp8", "nvfp4") if dtype in gpu.peak_flops]
        assert peaks == sorted(peaks)
        assert gpu.source
