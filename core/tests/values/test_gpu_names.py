"""Product names of GPUs, and the types that they name."""

from __future__ import annotations

import pytest

from llmb.values.gpu_names import describe_other_gpus

KNOWN = ("a100", "h100", "h200", "b200", "l40s")
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("products", "gpu_type", "description"),
    [
        ((), "h100", ""),
        ((H100,), "h100", ""),
        (("NVIDIA H100 PCIe", "NVIDIA H100 NVL"), "h100", ""),
        ((A100,), "h100", f"the job ran on {A100}, not h100"),
        ((A100, "NVIDIA H200"), "b200", f"the job ran on {A100}, NVIDIA H200, not b200"),
        (("NVIDIA T400",), "h100", ""),  # an unknown type
        (("NVIDIA Graphics Device", "NVIDIA L40S"), "h100", ""),  # an unknown product may be the one that was used
        ((A100,), "cpu", ""),
        ((A100,), "a100-of-the-site", ""),  # a type of a pack
    ],
)
def test_only_gpus_of_other_known_types_are_described(
    products: tuple[str, ...], gpu_type: str, description: str
) -> None:
    assert describe_other_gpus(products, gpu_type, KNOWN) == description


def test_on_several_nodes_gpus_of_several_types_are_described() -> None:
    """On a single node, a job may use only some of the GPUs."""
    assert describe_other_gpus((H100, A100), "h100", KNOWN) == ""
    described = describe_other_gpus((H100, A100), "h100", KNOWN, several_nodes=True)
    assert described == f"some nodes of the job have {A100}, not h100"
