"""Creates a container image from a virtual environment, its Python and their libraries, without a registry.

python3 tests/parts/image.py VENV NAME        with DOCKER_HOST in the environment
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from parts.docker import copy_libraries, import_image, write_tiny_root

FILES = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/hosts": "127.0.0.1 localhost\n"}


def import_venv(venv: Path, name: str, env: Mapping[str, str]) -> str:
    """Create an image with this virtual environment first on PATH, and return its id. ``env`` is that of a client."""
    python = (venv / "bin/python").resolve().parents[1]
    with tempfile.TemporaryDirectory(prefix="llmb-image-") as folder:
        root = Path(folder)
        write_tiny_root(root, FILES)
        copy_libraries([python / "bin/python3", *python.rglob("*.so*"), *venv.rglob("*.so*")], root)
        return import_image(root, name, f"ENV PATH={venv}/bin:/bin", also=[python, venv], env=env)


if __name__ == "__main__":
    print(import_venv(Path(sys.argv[1]), sys.argv[2], os.environ))
