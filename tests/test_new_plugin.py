"""``llmb new-plugin``: each kind is complete, and passes its own tests without changes."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from parts.command_line import command_line
from parts.examples import write_project_metadata
from parts.forked import run_llmb
from parts.wheels import EmptyEnvironment

import llmb

PROJECTS = [kind for kind in llmb.PLUGIN_KINDS if kind != "declared"]


@pytest.mark.parametrize("kind", llmb.PLUGIN_KINDS)
def test_no_placeholder_is_left(tmp_path: Path, kind: llmb.PluginKind) -> None:
    files = llmb.new_plugin("my_trainer", kind, tmp_path)
    for file in files:
        text = f"{file.relative_to(tmp_path)} {file.read_text()}".replace("__init__", "")
        assert "__" not in text, file


@pytest.mark.parametrize("kind", PROJECTS)
def test_a_project_with_code_shows_its_types(tmp_path: Path, kind: llmb.PluginKind) -> None:
    files = llmb.new_plugin("my_trainer", kind, tmp_path)
    assert ("py.typed" in [file.name for file in files]) == (kind != "pack")
    assert ("Typing :: Typed" in (tmp_path / "llmb-my-trainer/pyproject.toml").read_text()) == (kind != "pack")


def test_a_declared_framework_is_valid_and_so_are_its_comments(tmp_path: Path) -> None:
    [file] = llmb.new_plugin("my_trainer", "declared", tmp_path)
    spec = {
        "workload": {"recipe": str(file), "gpu_type": "h100", "dtype": "bf16", "gpus": 8},
        "target": {"scheduler": "local", "workdir": str(tmp_path)},
    }
    [run] = llmb.load(spec).runs
    assert run.run.steps == 20


def test_a_declared_framework_names_every_key(tmp_path: Path) -> None:
    [file] = llmb.new_plugin("my_trainer", "declared", tmp_path)
    schema = llmb.json_schema("framework file")["properties"]
    keys = {*schema, *schema["log"]["properties"]} - {"recipes"}  # several recipes instead of one
    assert {key for key in keys if not re.search(rf"\b{key}\b", file.read_text())} == set()


def test_each_optional_key_of_a_declared_framework_is_valid(tmp_path: Path) -> None:
    [file] = llmb.new_plugin("my_trainer", "declared", tmp_path)
    (tmp_path / "train.py").touch()
    (tmp_path / "requirements.txt").write_text("numpy==2.3.5 --hash=sha256:0\n")
    text = file.read_text().replace('commit = "..."', f'commit = "{"a" * 40}"')
    comment = re.compile(r"^# (?=\[|[a-z_A-Z]+ = )", re.MULTILINE)
    blocks = [each for each in text.split("\n\n") if each.startswith("# [")]
    lines = [
        line
        for line in re.findall(r"^# (?!recipe)\w+ = .*$", text, re.MULTILINE)
        if not any(line in block for block in blocks)
    ]
    assert len(blocks) >= 4
    assert len(lines) >= 15
    changes = {
        "# fields": ("line = ", "# line = "),
        "# [options": ("--seq=", "--seed={seed} --seq="),
        "# tp": ("--seq=", "--tp={tp} --seq="),
        "# micro_batch_size": ("--seq=", "--micro-batch={micro_batch_size} --seq="),
    }
    for part in (*blocks, *lines):
        old, new = next((change for begin, change in changes.items() if part.startswith(begin)), ("", ""))
        file.write_text(text.replace(old, new, 1).replace(part, comment.sub("", part)))
        spec = {
            "workload": {"recipe": str(file), "gpu_type": "h100", "dtype": "bf16", "gpus": 8},
            "target": {"scheduler": "local", "workdir": str(tmp_path)},
        }
        assert llmb.load(spec).runs, part


@pytest.mark.parametrize("kind", PROJECTS)
def test_a_project_requires_this_version_of_llmb(tmp_path: Path, kind: llmb.PluginKind) -> None:
    llmb.new_plugin("my_trainer", kind, tmp_path)
    project = tomllib.loads((tmp_path / "llmb-my-trainer/pyproject.toml").read_text())["project"]
    major, minor, _ = map(int, llmb.VERSION.split("."))
    assert f"llmb>={major}.{minor},<{major}.{minor + 1}" in project["dependencies"]


def test_a_name_and_a_folder_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = command_line(capsys)
    for name in ("My-Trainer", "../x", " "):
        done = run("new-plugin", name, "--into", tmp_path)
        assert (done.status, done.out) == (2, "")
        assert "expected small letters, digits and _" in done.err
    assert run("new-plugin", "mine", "--into", tmp_path, "--kind", "frame").status == 2
    assert run("new-plugin", "mine", "--into", tmp_path).out == f"{tmp_path}/mine.toml\n"
    assert "mine.toml exists" in run("new-plugin", "mine", "--into", tmp_path).err
    done = run("new-plugin", "a" * 300, "--into", tmp_path, "--kind", "framework")
    assert done.status == 2
    assert done.err.endswith(": File name too long\n")


def test_a_keyword_of_python_is_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = command_line(capsys)("new-plugin", "class", "--into", tmp_path)
    assert (done.status, list(tmp_path.iterdir())) == (2, [])
    assert "invalid name 'class', a keyword of Python; expected another name, such as my_class" in done.err


@pytest.mark.parametrize("name", ["slurm", "report", "nemo_launcher"])
def test_a_project_does_not_take_the_name_of_a_package_of_llmb(tmp_path: Path, name: str) -> None:
    with pytest.raises(llmb.LlmbError, match=f"llmb-{name.replace('_', '-')} is a package of llmb"):
        llmb.new_plugin(name, "framework", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert llmb.new_plugin(name, "declared", tmp_path)


def test_a_log_without_steps_is_rejected_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = command_line(capsys)
    log = tmp_path / "a.log"
    log.write_text("rank 3 is ready\nloss nan\n")
    done = run("new-plugin", "mine", "--from", log, "--into", tmp_path)
    assert (done.status, list(tmp_path.iterdir())) == (2, [log])
    assert "a.log: no line has a number that rises" in done.err
    assert "cannot read" in run("new-plugin", "mine", "--from", tmp_path / "b.log", "--into", tmp_path).err
    done = run("new-plugin", "mine", "--from", log, "--kind", "pack", "--into", tmp_path)
    assert "--from requires --kind declared, not pack" in done.err


@pytest.mark.parametrize("name", ["a", "a_trainer_with_a_long_name"])
def test_code_is_formatted_whatever_the_name(tmp_path: Path, name: str) -> None:
    for kind in PROJECTS:
        llmb.new_plugin(name, kind, tmp_path / kind)
    ruff = [sys.executable, "-m", "ruff", "format", "--no-cache", "--diff", "."]
    done = subprocess.run(ruff, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_two_projects_are_tested_by_one_call_of_pytest(tmp_path: Path) -> None:
    """Each has a file test_contract.py, and authors write a test_log.py into each."""
    projects = [str(llmb.new_plugin(name, "extension", tmp_path)[0].parent) for name in ("one", "two")]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "-p", "no:cacheprovider", *projects]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert {"TestOne", "TestTwo"} <= set(re.findall(r"Test\w+", done.stdout))


def test_the_example_of_a_framework_runs_here(tmp_path: Path) -> None:
    llmb.new_plugin("my_trainer", "framework", tmp_path)
    project = tmp_path / "llmb-my-trainer"
    write_project_metadata(project, project / "src")
    env = {**os.environ, "PYTHONPATH": str(project / "src"), "LLMB_HOME": str(tmp_path / "home")}
    done = run_llmb(["run", "example.toml", "--set", "workload.gpus=[1, 2]"], env=env, cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("  completed") == 2


def test_every_step_of_a_longer_example_is_read(tmp_path: Path) -> None:
    llmb.new_plugin("my_trainer", "framework", tmp_path)
    package = tmp_path / "llmb-my-trainer/src/llmb_my_trainer"
    without_waiting = f"import runpy, time; time.sleep = float; runpy.run_path({str(package / 'train.py')!r})"
    command = [sys.executable, "-c", without_waiting, "--steps=500"]
    log = subprocess.run(command, env={**os.environ, "RANK": "0"}, capture_output=True, check=True).stdout
    parser = runpy.run_path(str(package / "log.py"))["Log"]()
    steps = [item for item in [*parser.feed(log), *parser.close()] if isinstance(item, llmb.Step)]
    assert [step.step for step in steps] == list(range(500))


@pytest.mark.parametrize("kind", PROJECTS)
def test_the_steps_of_a_project_end_with_its_publication(tmp_path: Path, kind: llmb.PluginKind) -> None:
    llmb.new_plugin("my_trainer", kind, tmp_path)
    commands = steps(tmp_path / "llmb-my-trainer")
    assert commands[0].startswith("uv pip install --editable . ")
    assert commands[-2:] == ["uv build", "uv publish"]


def steps(project: Path) -> list[str]:
    """Return the commands that the README of a project shows."""
    block = (project / "README.md").read_text().split("```")[1]
    return [line.partition("  #")[0].strip() for line in block.strip().splitlines()]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> EmptyEnvironment:
    """Install core and the tools of an author once."""
    made = EmptyEnvironment(tmp_path_factory.mktemp("author"))
    made.install(f"{wheels['core']}[testing]", wheels["local"], "mypy", "ruff", "build", "hatchling")
    return made


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.xdist_group("wheels")
@pytest.mark.parametrize("kind", PROJECTS)
def test_a_project_passes_its_tests_and_its_steps_work(
    tmp_path: Path, environment: EmptyEnvironment, kind: llmb.PluginKind
) -> None:
    assert environment.llmb("new-plugin", "my_trainer", "--kind", kind, "--into", str(tmp_path)).returncode == 0
    project = tmp_path / "llmb-my-trainer"
    environment.install(project)  # replaces the project of another kind
    _install, *written, build, _publish = steps(project)
    assert build == "uv build"  # which would install hatchling from the index
    commands = [*written, "python -m build --no-isolation", "ruff check .", "ruff format --check ."]
    if kind != "pack":  # which has no code
        commands.append("mypy")
    env = {**environment.env, "MYPY_CACHE_DIR": str(environment.folder / "mypy")}
    for command in commands:
        done = subprocess.run(command.split(), cwd=project, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
