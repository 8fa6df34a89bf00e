"""Product names of GPUs, as nvidia-smi prints them, and the GPU types that they name."""

import re
from collections.abc import Iterable, Sequence


def is_gpu_of_type(product: str, gpu_type: str) -> bool:
    """Check whether a product name, such as NVIDIA H100 80GB HBM3, contains a GPU type, such as h100, as words."""
    words = re.split(r"[^a-z0-9]+", product.lower())
    wanted = re.sub(r"[^a-z0-9]", "", gpu_type.lower())
    return any(
        "".join(words[start:end]) == wanted for start in range(len(words)) for end in range(start + 1, len(words) + 1)
    )


def describe_other_gpus(
    products: Sequence[str], gpu_type: str, known_types: Iterable[str], *, several_nodes: bool = False
) -> str:
    """Describe the GPUs of a job that are of other known types than that of the run, or return "".

    A type that is not known, such as one of a pack, may be another name of the same GPUs. On a single node, a product
    of another type may be a GPU that the job does not use, unless all are.
    """
    known = set(known_types)
    others = [
        product
        for product in products
        if not is_gpu_of_type(product, gpu_type) and any(is_gpu_of_type(product, each) for each in known)
    ]
    if gpu_type not in known or not others:
        return ""
    if len(others) == len(products):
        return f"the job ran on {', '.join(others)}, not {gpu_type}"
    return f"some nodes of the job have {', '.join(others)}, not {gpu_type}" if several_nodes else ""
