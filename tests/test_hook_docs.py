"""docs/hooks.md: a heading for each hook, as it is called, and pieces of code that make a plugin of each kind."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from parts.deadline import DEADLINE_S

import llmb

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/hooks.md").read_text()
PUBLISHING = (ROOT / "docs/plugins.md").read_text()
KINDS = dict(re.findall(r"^## An? (\w+)\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE))
MOMENTS = dict(
    re.findall(r"^\| ([^|]+) \| (.*`\w+`.*) \|$", PAGE.partition("## When llmb")[2].partition("\n## ")[0], re.M)
)
HOOKS = {"framework": llmb.FrameworkHooks, "scheduler": llmb.SchedulerHooks, "extension": llmb.ExtensionHooks}
SPEC = '[workload]\nrecipe = "acme/small"\ngpu_type = "acme1"\ndtype = "bf16"\ngpus = 1\n[target]\nscheduler = "acme"\n'


def as_headed(name: str, hook: Any) -> str:
    if not inspect.isfunction(hook):
        return f"`{name}`"
    return f"`{name}({', '.join(list(inspect.signature(hook).parameters)[1:])})`"


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """Install the page's plugins in a folder."""
    project, recipe = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    package, info = tmp_path / "site/llmb_acme", tmp_path / "site/llmb_acme-0.1.0.dist-info"
    (package / "recipes").mkdir(parents=True)
    info.mkdir()
    (package / "recipes/small.toml").write_text(recipe)
    stated = tomllib.loads(project)["project"]
    needs = "".join(f"Requires-Dist: {each}\n" for each in stated["dependencies"])
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {stated['name']}\nVersion: {stated['version']}\n{needs}"
    )
    points = stated["entry-points"]
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in each.items()) for group, each in points.items())
    )
    (package / "__init__.py").write_text("")
    for text in KINDS.values():
        [file] = re.findall(r"^`llmb_acme/(\w+\.py)`", text, re.MULTILINE)
        (package / file).write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    (tmp_path / "spec.toml").write_text(f'{SPEC}workdir = "{tmp_path}/work"\n')
    return tmp_path


@pytest.mark.parametrize("kind", HOOKS)
def test_every_hook_has_its_heading_as_it_is_called(kind: str) -> None:
    hooks = {**dict.fromkeys(HOOKS[kind].__annotations__), **vars(HOOKS[kind])}
    stated = [as_headed(name, hook) for name, hook in hooks.items() if not name.startswith("_")]
    assert sorted(re.findall(r"^### (.*)$", KINDS[kind], re.MULTILINE)) == sorted(stated)


def test_the_table_of_moments_names_every_hook() -> None:
    hooks = {name for each in HOOKS.values() for name, hook in vars(each).items() if hasattr(hook, "llmb_spec")}
    assert set(re.findall(r"`(\w+)`", "".join(MOMENTS.values()))) == hooks


def test_a_plan_calls_the_hooks_in_the_order_of_the_table(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(acme / "site"))
    importlib.invalidate_caches()
    called: list[str] = []

    def note_call(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(acme / "site")):
            called.append(frame.f_code.co_name)

    registry = llmb.PluginRegistry()
    workload = llmb.load(acme / "spec.toml", overrides=["framework.words=9"])
    sys.setprofile(note_call)
    try:
        llmb.plan(workload, registry=registry)
    finally:
        sys.setprofile(None)
    stated = re.findall(r"`(\w+)`", MOMENTS["a run is planned"])
    assert [*dict.fromkeys(each for each in called if each in stated)] == stated


def test_the_pieces_are_plugins_with_every_hook(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(acme / "site"))
    importlib.invalidate_caches()
    listed = {each.kind: each for each in llmb.list_plugins() if each.name == "acme"}
    for kind, hooks in HOOKS.items():
        assert listed[kind].error is None
        assert set(listed[kind].hooks) == {name for name, hook in vars(hooks).items() if hasattr(hook, "llmb_spec")}
    [planned] = llmb.plan(
        llmb.load(acme / "spec.toml", overrides=["framework.words=9"]), registry=llmb.PluginRegistry()
    )
    assert {task.task.kind for task in planned.tasks} == {"words", "folder"}
    assert llmb.metrics("acme/small", gpu_type="acme1", dtype="bf16", gpus=1, step_time_s=0.5).mfu


@pytest.mark.slow
def test_the_pieces_are_typed_strictly(acme: Path) -> None:
    [publishing] = re.findall(r"```python\n(.*?)```", PUBLISHING, re.DOTALL)
    (acme / "site/publishing.py").write_text(publishing)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *(acme / "site").rglob("*.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_pieces_train(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(acme / "site"))
    monkeypatch.setenv("ACME_TOKEN", "hidden")
    command = [
        sys.executable,
        "-m",
        "llmb",
        "run",
        str(acme / "spec.toml"),
        "--set",
        "framework.words=9",
        "--set",
        "framework.hub=true",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "completed" in done.stdout
    assert [*acme.glob("work/runs/*/begun")]
    assert not [*acme.glob("work/runs/*/.secrets")]
