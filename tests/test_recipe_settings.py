"""The settings of a framework in recipes: errors for a new run, but not for recorded ones."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from parts.toy import ToyRuns

import llmb
from llmb.testing import PackContract

TOY = Path(__file__).parent / "toy/llmb_toy/recipes/tiny.toml"


@pytest.fixture
def recipes() -> Path:
    """Return the folder of the user's recipes."""
    return Path(os.environ["XDG_CONFIG_HOME"]) / "llmb/recipes"


def write_recipe(folder: Path, text: str, name: str = "mine") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.toml"
    file.write_text(text)
    return file


def copy_shared(framework: str, recipes: Path) -> Path:
    """Copy the files that recipes of a framework share. Return the folder of its recipes."""
    shipped = Path(str(files(f"llmb_{framework}"))) / "recipes"
    shutil.copytree(shipped, recipes / framework)
    for copy in (recipes / framework).glob("*.toml"):
        copy.unlink()
    return shipped


SHIPPED = {
    "maxtext": ("llama2-70b.toml", "[framework.xla_flgs]\nx = 1\n", "framework.xla_flgs", "xla_flags"),
    "megatron_bridge": (
        "llama3.1-8b@26.06.toml",
        "[framework.env_rules.mine]\nwen = {}\nenv = {}\n",
        "framework.env_rules.mine.wen",
        "when",
    ),
    "nemo_launcher": ("llama3.1-8b.toml", "[framework.tokenizr]\nx = 1\n", "framework.tokenizr", "tokenizer"),
}


TINY = {"maxtext": "llama2-tiny", "megatron_bridge": "llama3-tiny"}


@pytest.mark.parametrize("framework", TINY)
def test_a_recipe_without_an_environment_runs_in_one_that_the_user_prepares(framework: str, recipes: Path) -> None:
    shipped = copy_shared(framework, recipes) / f"{TINY[framework]}.toml"
    file = write_recipe(recipes / framework, shipped.read_text())
    for each in (file, *file.parent.glob("shared/*.toml")):
        each.write_text(re.sub(r"(?m)^(lock|python|space_gb) = .*\n", "", each.read_text()))
    workload = {"recipe": f"{framework}/mine", "gpu_type": "cpu", "dtype": "fp32", "gpus": 1}
    [run] = llmb.plan(llmb.load({"workload": workload, "target": {"scheduler": "local"}}))
    assert [task.task.kind for task in run.tasks] == []
    assert "in the user's own environment" in run.script.text


@pytest.mark.parametrize("framework", SHIPPED)
def test_an_unknown_setting_is_an_error_that_names_file_key_and_nearest_key(framework: str, recipes: Path) -> None:
    name, typo, key, nearest = SHIPPED[framework]
    shipped = copy_shared(framework, recipes)
    file = write_recipe(recipes / framework, f"{(shipped / name).read_text()}\n{typo}")
    workload = {"recipe": f"{framework}/mine", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
    with pytest.raises(llmb.RecipeError) as raised:
        llmb.plan(llmb.load({"workload": workload, "target": {"scheduler": "local"}}))
    error = str(raised.value)
    assert error.startswith(f"{file}: {key}: unknown key; expected one of ")
    assert error.endswith(f" (did you mean '{nearest}'?)")
    assert "\n" not in error


def test_a_setting_of_the_wrong_type_is_an_error(toy: ToyRuns, recipes: Path) -> None:
    file = write_recipe(recipes / "toy", f"{TOY.read_text()}\n[framework]\nnote = 3\n")
    done = toy.llmb("validate", toy.spec(workload={"recipe": "toy/mine"}))
    assert (done.returncode, done.stderr) == (
        2,
        f"llmb: {file}: framework.note: invalid value 3; expected a string\n",
    )


def test_the_settings_of_all_recipes_are_checked_together(toy: ToyRuns, recipes: Path) -> None:
    text = f"{TOY.read_text()}\n[framework]\nnote = 3\n"
    both = [write_recipe(recipes / "toy", text, name) for name in ("mine", "other")]
    done = toy.llmb("validate", toy.spec(workload={"recipe": ["toy/mine", "toy/other"]}))
    assert done.returncode == 2
    assert done.stderr == "".join(
        f"llmb: {file}: framework.note: invalid value 3; expected a string\n" for file in both
    )


def test_the_contract_of_packs_reports_an_unknown_setting(toy: ToyRuns, recipes: Path) -> None:
    write_recipe(recipes / "toy", f"{TOY.read_text()}\n[framework]\nnte = 'x'\n")

    class TestMine(PackContract):
        pack = "user"

    with pytest.raises(pytest.fail.Exception, match=r"framework\.nte: unknown key"):
        TestMine().test_published_points_build_jobs()


def test_doctor_reports_an_unknown_setting(toy: ToyRuns, recipes: Path, write_target: Any) -> None:
    file = write_recipe(recipes / "toy", f"{TOY.read_text()}\n[framework]\nnte = 'x'\n")
    write_target("box", scheduler="local")
    checks = json.loads(toy.llmb("doctor", "box", "--json").stdout)["checks"]
    [check] = [each for each in checks if each["name"] == "toy recipes"]
    assert f"{file}: framework.nte: unknown key" in check["detail"]


def test_a_recorded_run_is_followed_after_its_recipe_got_an_unknown_setting(toy: ToyRuns, recipes: Path) -> None:
    file = write_recipe(recipes / "toy", f"{TOY.read_text()}\n[framework]\nnote = 'x'\n")
    spec = toy.spec(workload={"recipe": "toy/mine"}, framework={"gate": str(toy.gate)})
    [run] = toy.runs("run", spec, "--detach")
    file.write_text(file.read_text().replace("note", "nte"))
    assert "framework.nte: unknown key" in toy.llmb("validate", spec).stderr
    assert toy.llmb("show", run["run_id"]).returncode == 0
    toy.gate.touch()
    [attached] = toy.runs("attach", run["run_id"])
    assert attached["state"] == "completed"
    assert toy.llmb("cancel", run["run_id"]).returncode == 0
