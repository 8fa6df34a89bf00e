"""The lines by which a user defines a GPU type that llmb does not know."""

import json
import re


def example_table(name: str) -> str:
    """Return a table of accelerators.toml for a GPU type, with the values of an example."""
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    return f"""[{key}]
gpus_per_node = 8
memory_gb = 48
peak_flops = {{ bf16 = 362.05e12 }} # dense, without sparsity
source = "the data sheet"
"""
