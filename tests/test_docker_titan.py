"""A recipe that adds software to its image, in a real container: real git, venv and pip, with small local packages.

The image has the repositories and wheels in folders, so no test needs a network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.deadline import DEADLINE_S
from parts.docker import Docker, copy_libraries, copy_program, import_image, write_tiny_root
from parts.examples import SOURCES, write_metadata

ROOT = Path(__file__).parents[1]
TINY = ROOT / "examples/plugins/llmb-torchtitan/src/llmb_torchtitan/recipes/deepseek-v3-tiny.toml"
IMAGE = "llmb-titan:base"
PYTHON = Path(sys.executable).resolve()
GIT_CORE = Path("/usr/lib/git-core")

pytestmark = [pytest.mark.real, pytest.mark.slow]

REQUIREMENTS = {"torch": "nvidia-nvshmem-cu13==3.4.5", "torchdata": "torch>=2"}
"""As of the real packages: the image has the libraries that PyTorch requires."""

WHEELS = {
    "torch-2.11.0": {"torch/__init__.py": "__version__ = '2.11.0'\n"},
    "nvidia_nvshmem_cu13-3.4.5": {},
    "nvidia_nvshmem_cu13-3.6.5": {
        "nvidia/nvshmem/__init__.py": "",
        "nvidia/nvshmem/lib/libnvshmem_host.so.3": "",
    },
    **{
        f"{name}-1": {f"{name}.py": ""}
        for name in ("torchdata", "datasets", "tokenizers", "tyro", "einops", "fsspec", "tensorboard", "pillow")
    },
}

BACKEND = '''"""Build backend of a package with one module, which checks the variables of the build."""

import os
import zipfile
from pathlib import Path


def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = Path("name").read_text().strip()
    if name == "deep_ep":
        assert os.environ["TORCH_CUDA_ARCH_LIST"] == "9.0"
        assert Path(os.environ["NVSHMEM_DIR"], "lib/libnvshmem_host.so").exists()
        assert Path(os.environ["CPLUS_INCLUDE_PATH"], "cuda/std/tuple").exists()
    with zipfile.ZipFile(Path(folder, f"{name}-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr(f"{name}.py", Path("module.py").read_text())
        info = f"{name}-1.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"{name}-1-py3-none-any.whl"
'''
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
GIT_CONFIG = '[url "file:///mirror/"]\n\tinsteadOf = https://github.com/\n[safe]\n\tdirectory = *\n'


def copy_python(root: Path) -> None:
    """Copy this Python with its standard library and pip, each to the same path below ``root``."""
    find_pip = "import pip; print(pip.__path__[0])"
    pip = subprocess.run([PYTHON, "-c", find_pip], check=True, capture_output=True, text=True).stdout.strip()
    library = Path(sysconfig.get_path("stdlib"))
    left_out = shutil.ignore_patterns("site-packages", "dist-packages", "test", "config-*", "__pycache__")
    for folder in (library, Path(pip)):
        shutil.copytree(folder, root / folder.relative_to("/"), ignore=left_out, dirs_exist_ok=True)
    (root / PYTHON.parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
    copy_program(PYTHON, root)
    (root / PYTHON.parent.relative_to("/") / "python3").symlink_to(PYTHON.name)
    for shared in PYTHON.parents[1].glob("lib/libpython*.so*"):
        shutil.copy(shared, root / shared.relative_to("/"), follow_symlinks=False)
    copy_libraries([PYTHON, *library.glob("lib-dynload/*.so")], root)


def write_wheels(folder: Path) -> None:
    folder.mkdir(parents=True)
    for release, files in WHEELS.items():
        name, _, version = release.partition("-")
        info = f"{release}.dist-info"
        with zipfile.ZipFile(folder / f"{release}-py3-none-any.whl", "w") as wheel:
            for path, text in files.items():
                wheel.writestr(path, text)
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            if requirement := REQUIREMENTS.get(name):
                metadata += f"Requires-Dist: {requirement}\n"
            wheel.writestr(f"{info}/METADATA", metadata)
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")


def write_repository(folder: Path, files: dict[str, str]) -> str:
    """Create a repository whose newest commit breaks the package. Return the commit before it."""
    folder.mkdir(parents=True)
    git("init", "--quiet", cwd=folder)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    commit(folder)
    good = git("rev-parse", "HEAD", cwd=folder)
    (folder / "module.py").write_text("raise AssertionError('the newest commit, not that of the recipe')\n")
    commit(folder)
    git("tag", "v2.8.1", good, cwd=folder)
    return good


def commit(folder: Path) -> None:
    git("add", ".", cwd=folder)
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "a", cwd=folder)


def git(*arguments: str, cwd: Path) -> str:
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def software(docker_session: Docker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Create an image with Python, pip, git, and copies of what the build fetches. Yield the recipe's versions."""
    root = tmp_path_factory.mktemp("image")
    files = {
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
        "etc/gitconfig": GIT_CONFIG,
        "etc/constraint.txt": "torch==2.10.0\n",
        "usr/include/infiniband/mlx5dv.h": "",
    }
    write_tiny_root(root, files)
    git_program = Path(shutil.which("git") or "").resolve()
    (root / git_program.parent.relative_to("/")).mkdir(parents=True)
    copy_program(git_program, root)
    copy_python(root)
    shutil.copytree(GIT_CORE, root / GIT_CORE.relative_to("/"), symlinks=True)
    write_wheels(root / "mirror/wheels")
    package = {"pyproject.toml": PROJECT, "backend.py": BACKEND, "module.py": "built = True\n"}
    commits = {
        name: write_repository(root / "mirror" / address, files)
        for name, address, files in (
            ("DEEPEP_COMMIT", "deepseek-ai/DeepEP.git", {**package, "name": "deep_ep\n"}),
            ("TORCHAO_COMMIT", "pytorch/ao.git", {**package, "name": "torchao\n"}),
            ("CCCL", "NVIDIA/cccl.git", {"libcudacxx/include/cuda/std/tuple": ""}),
        )
    }
    env = (
        f"ENV PATH={PYTHON.parent}:{git_program.parent}:/bin PIP_NO_INDEX=1 PIP_FIND_LINKS=/mirror/wheels "
        "PIP_CONSTRAINT=/etc/constraint.txt PIP_DISABLE_PIP_VERSION_CHECK=1"
    )
    import_image(root, IMAGE, env, env={**os.environ, **docker_session.env})
    yield {**commits, "CCCL": "v2.8.1", "TORCH": "torch==2.11.0", "NVSHMEM": "3.6.5", "TORCH_CUDA_ARCH_LIST": "9.0"}
    docker_session("image", "rm", "--force", IMAGE)


@pytest.fixture
def run(tmp_path: Path, docker_session: Docker, software: dict[str, str]) -> Any:
    """Return a function that runs a recipe with this software on two ranks, and returns the run."""
    recipe = tomllib.loads(TINY.read_text())
    program = "import deep_ep, torchao, torch; assert torch.__version__ == '2.11.0'; import torchtitan.train"
    recipe["framework"] |= {"program": ["-c", program], "files": []}
    site = [str(write_metadata(tmp_path / "site")), *map(str, SOURCES)]
    env = {**os.environ, **docker_session.env, "PYTHONPATH": os.pathsep.join(site)}
    env |= {"LLMB_HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}

    def start(**versions: str) -> dict[str, Any]:
        file = tmp_path / "config/llmb/recipes/torchtitan/with-software.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        recipe["framework"]["software"] = {**software, **versions}
        file.write_text(tomli_w.dumps({**recipe, "image": {"ref": IMAGE}}))
        spec: dict[str, dict[str, Any]] = {
            "workload": {"recipe": "torchtitan/with-software", "gpu_type": "cpu", "dtype": "fp32", "gpus": 2},
            "framework": {"checkout": str(ROOT / "tests/torchtitan_standin")},
            "target": {"scheduler": "local", "runtime": "docker", "container": {"ulimits": {}}},
        }
        spec["target"] |= {"workdir": str(tmp_path / "work"), "lock": str(tmp_path / "lock")}
        (tmp_path / "spec.toml").write_text(tomli_w.dumps(spec))
        command = [sys.executable, "-m", "llmb", "run", str(tmp_path / "spec.toml"), "--json"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert done.stdout, done.stderr
        [found] = json.loads(done.stdout)["runs"]
        return dict(found)

    return start


def test_the_software_is_built_in_the_image_and_the_training_uses_it(run: Any, tmp_path: Path) -> None:
    first = run()
    assert first["state"] == "completed", first
    assert first["metrics"]["mfu"] > 0
    [folder] = (tmp_path / "work/cache/software").iterdir()
    assert (folder / ".complete").read_text() == "2.11.0\n"
    assert not (folder / "build").exists()
    assert [*folder.glob("lib/*/site-packages/nvidia_nvshmem_cu13-3.6.5.dist-info")], "PyTorch replaced NVSHMEM"
    built = folder.stat().st_mtime_ns
    assert run()["state"] == "completed"
    assert folder.stat().st_mtime_ns == built


def test_a_build_that_fails_names_its_last_error(run: Any) -> None:
    failed = run(DEEPEP_COMMIT="567632dd59810d77b3cc05553df953cc0f779799")
    assert failed["state"] == "failed"
    assert "567632dd59810d77b3cc05553df953cc0f779799" in failed["reason"]
