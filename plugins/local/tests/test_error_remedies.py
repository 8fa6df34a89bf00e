"""Errors of container engines, and the remedies that they get."""

from __future__ import annotations

import subprocess

import pytest

from llmb import resource_text


def explain(image: str, output: str) -> str:
    script = resource_text("llmb_local", "runtimes/error_remedies.sh")
    words = ["bash", "-c", f'{script}\nengine=docker image=$1\nexplain "$2"', "bash", image, output]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("nvcr.io/nvidia/nemo:25.11", "`docker login nvcr.io`"),
        ("localhost:5000/tiny:1", "`docker login localhost:5000`"),
        ("localhost/tiny:1", "`docker login localhost`"),
        ("mycompany/train:1", "`docker login`"),
        ("mycompany/a.b/train:1", "`docker login`"),
        ("ubuntu:22.04", "`docker login`"),
    ],
)
def test_a_denied_image_names_the_registry_to_log_in_to(image: str, command: str) -> None:
    assert command in explain(image, "unauthorized: authentication required")
