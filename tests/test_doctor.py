"""`llmb doctor`: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb


def checks(toy: Any, *arguments: str, status: int, **env: str) -> dict[str, dict[str, Any]]:
    done = toy.llmb("doctor", *arguments, "--json", env=env)
    assert done.returncode == status, done.stdout + done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["checks"]}


def name_target(name: str, **table: Any) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"], "llmb", "targets.toml")
    file.parent.mkdir(parents=True)
    file.write_text(tomli_w.dumps({name: table}))


def test_this_machine_and_what_each_framework_could_run_here(toy: Any) -> None:
    found = checks(toy, status=0)
    assert all(found[name]["ok"] for name in ("records", "plugins", "local: reachable", "local: work directory"))
    assert "can run here: judged, tiny" in found["local: toy recipes"]["detail"]
    assert "llama2-tiny" in found["local: maxtext recipes"]["detail"]
    lacking = found["local: nemo_launcher recipes"]["detail"]
    assert lacking.startswith(
        "can run here: none; grok1-314b, llama3.1-405b, llama3.1-70b, llama3.1-8b, nemotron4-340b cannot"
    )
    assert lacking.count("asks for 8 to 128 GPUs, and this machine has") == lacking.count("this machine has") == 1
    assert found["local: nemo_launcher recipes"]["ok"]
    assert re.search(r"^ *- +local: nemo_launcher recipes", toy.llmb("doctor").stdout, re.M)
    assert f"/work will be made in {toy.home.parent}, " in found["local: work directory"]["detail"]
    assert not (toy.home / "work").exists()


def test_a_named_target_is_looked_at_with_its_own_keys(toy: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    name_target("box", scheduler="local", workdir=str(tmp_path / "file" / "work"))
    found = checks(toy, "box", status=1)
    assert not found["work directory"]["ok"]
    assert "target.workdir" in found["work directory"]["remedy"]
    assert "can run here, once what is missing is there: judged, tiny" in found["toy recipes"]["detail"]


@pytest.mark.parametrize(("token", "lacking"), [("", ["llama3.1-70b, llama3.1-8b"]), ("hf_x", [])])
def test_a_recipe_whose_data_need_a_token_cannot_run_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str, lacking: list[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    name_target("eos", scheduler="slurm", workdir=str(tmp_path / "work"))
    [told] = [each.detail.split("; ") for each in llmb.doctor("eos") if each.name == "nemo_launcher recipes"]
    why = " cannot: HF_TOKEN is not set in the environment of llmb"
    assert [each.removesuffix(why) for each in told if each.endswith(why)] == lacking


def test_a_target_that_is_not_known_is_one_line(toy: Any) -> None:
    name_target("eos", scheduler="local")
    done = toy.llmb("doctor", "eoss")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "no target 'eoss'" in line
    assert "did you mean 'eos'" in line


def test_every_fault_of_a_named_target_is_told(toy: Any) -> None:
    name_target("box", scheduler="local", workdir="relative", grace="1")
    lines = toy.llmb("doctor", "box").stderr.splitlines()
    assert len(lines) == 2
    assert all("targets.toml: box." in line for line in lines)


def test_a_broken_plugin_is_told_and_the_rest_is_looked_at(toy: Any, tmp_path: Path) -> None:
    folder = tmp_path / "site" / "llmb_broken-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: llmb-broken\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[llmb.frameworks]\nbroken = llmb_broken:Plugin\n")
    path = os.pathsep.join([str(tmp_path / "site"), toy.env["PYTHONPATH"]])
    found = checks(toy, status=1, PYTHONPATH=path)
    assert "llmb-broken 1.0" in found["plugin broken"]["detail"]
    assert "judged, tiny" in found["local: toy recipes"]["detail"]


def test_a_scheduler_that_needs_a_key_hides_nothing_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "llmb_queued-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: llmb-queued\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[llmb.schedulers]\naqueued = llmb_queued:Queued\n")
    options = "@attrs.frozen\nclass Options:\n    queue: str\n\n"
    plugin = "class Queued(Local):\n    options = Options\n"
    (tmp_path / "llmb_queued.py").write_text(f"import attrs\nfrom llmb_local.plugin import Local\n\n{options}{plugin}")
    monkeypatch.syspath_prepend(tmp_path)
    found = {each.name: each for each in llmb.doctor()}
    assert (found["aqueued: target"].ok, found["local: reachable"].ok) == (None, True)
    assert found["aqueued: target"].detail == "target.queue: is missing; expected a string"
    assert "targets.toml" in found["aqueued: target"].remedy


def test_for_people_it_is_a_line_a_check_with_the_remedy_below(toy: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    name_target("box", scheduler="local", workdir=str(tmp_path / "file" / "work"))
    lines = toy.llmb("doctor", "box").stdout.splitlines()
    [missing] = [number for number, line in enumerate(lines) if line.startswith("missing")]
    assert "work directory" in lines[missing]
    assert "set target.workdir" in lines[missing + 1]
