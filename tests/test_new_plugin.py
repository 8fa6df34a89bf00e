"""``llmb new-plugin``: each kind is complete, and passes its own tests without changes."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
from parts.command_line import command_line
from parts.wheels import EmptyEnvironment

import llmb

PROJECTS = [kind for kind in llmb.PLUGIN_KINDS if kind != "declared"]


@pytest.mark.parametrize("kind", llmb.PLUGIN_KINDS)
def test_no_placeholder_is_left(tmp_path: Path, kind: llmb.PluginKind) -> None:
    files = llmb.new_plugin("my_trainer", kind, tmp_path)
    for file in files:
        text = f"{file.relative_to(tmp_path)} {file.read_text()}".replace("__init__", "")
        assert "__" not in text, file


def test_a_declared_framework_is_valid_and_so_are_its_comments(tmp_path: Path) -> None:
    [file] = llmb.new_plugin("my_trainer", "declared", tmp_path)
    spec = {
        "workload": {"recipe": str(file), "gpu_type": "h100", "dtype": "bf16", "gpus": 8},
        "target": {"scheduler": "local", "workdir": str(tmp_path)},
    }
    [run] = llmb.load(spec).runs
    assert run.run.steps == 20


@pytest.mark.parametrize("kind", PROJECTS)
def test_a_project_requires_this_version_of_llmb(tmp_path: Path, kind: llmb.PluginKind) -> None:
    llmb.new_plugin("my_trainer", kind, tmp_path)
    project = tomllib.loads((tmp_path / "llmb-my-trainer/pyproject.toml").read_text())["project"]
    major, minor, _ = map(int, llmb.VERSION.split("."))
    assert f"llmb>={major}.{minor},<{major}.{minor + 1}" in project["dependencies"]


def test_a_name_and_a_folder_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = command_line(capsys)
    for name in ("My-Trainer", "class", "../x", ""):
        done = run("new-plugin", name, "--into", tmp_path)
        assert (done.status, done.out) == (2, "")
        assert "expected small letters, digits and _" in done.err
    assert run("new-plugin", "mine", "--into", tmp_path, "--kind", "frame").status == 2
    assert run("new-plugin", "mine", "--into", tmp_path).out == f"{tmp_path}/mine.toml\n"
    assert "mine.toml exists" in run("new-plugin", "mine", "--into", tmp_path).err


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.xdist_group("wheels")
@pytest.mark.parametrize("kind", PROJECTS)
def test_a_project_passes_its_tests_without_changes(
    tmp_path: Path, wheels: dict[str, Path], kind: llmb.PluginKind
) -> None:
    environment = EmptyEnvironment(tmp_path)
    environment.install(f"{wheels['core']}[testing]", "mypy", "ruff", "build", "hatchling")
    assert environment.llmb("new-plugin", "my_trainer", "--kind", kind).returncode == 0
    project = tmp_path / "llmb-my-trainer"
    environment.install(project)
    commands = [
        ["pytest", "-q"],
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["build", "--no-isolation"],
    ]
    if kind != "pack":  # which has no code
        commands.append(["mypy", "src", "tests"])
    for command in commands:
        words = [str(environment.python), "-m", *command]
        done = subprocess.run(words, cwd=project, env=environment.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
