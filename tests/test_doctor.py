"""``llmb doctor``: the checks of this machine or of a target, and how to fix what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.command_line import Llmb, command_line
from parts.disks import small_disk
from parts.toy import TOY

import llmb as library

H100S = "\n".join(f"{index}, NVIDIA H100 80GB HBM3, 81559, 0, 550.54.15" for index in range(8))
"""What nvidia-smi prints about 8 idle GPUs."""


@pytest.fixture
def llmb(toy: Any, capsys: pytest.CaptureFixture[str]) -> Llmb:
    """Return a function that runs ``llmb`` beside the toy framework."""
    return command_line(capsys)


def checks(llmb: Llmb, *arguments: str, status: int) -> dict[str, dict[str, Any]]:
    done = llmb("doctor", *arguments, "--json")
    assert done.status == status, done.out + done.err
    return {each["name"]: each for each in done.json["checks"]}


def name_target(name: str, **table: Any) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"], "llmb", "targets.toml")
    file.parent.mkdir(parents=True)
    file.write_text(tomli_w.dumps({name: table}))


@pytest.fixture
def _without_toy_schedulers(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the schedulers of the toy, which doctor would check too."""
    folder = shutil.copytree(TOY, toy.folder / "framework", ignore=shutil.ignore_patterns("__pycache__"))
    [points] = folder.glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text().partition("[llmb.schedulers]")[0])
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.usefixtures("_without_toy_schedulers")
def test_this_machine_and_the_recipes_that_can_run_on_it(toy: Any, llmb: Llmb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", install_programs(toy.folder / "bin", docker="echo '27.1.1|/'"))
    found = checks(llmb, status=0)
    assert all(found[name]["ok"] for name in ("records", "plugins", "local: reachable", "local: work directory"))
    assert "available: judged, tiny" in found["local: toy recipes"]["detail"]
    assert "llama2-tiny" in found["local: maxtext recipes"]["detail"]
    lacking = found["local: nemo_launcher recipes"]["detail"]
    assert lacking.startswith("available: none; unavailable: grok1-314b, llama3.1-405b, llama3.1-70b, nemotron4-340b (")
    assert "the job needs an MPI launcher" in lacking
    assert "unavailable: llama3.1-8b (the job needs 8 GPUs, but this machine has" in lacking
    assert found["local: nemo_launcher recipes"]["ok"] is None
    assert f"/work will be created in {toy.home.parent}, " in found["local: work directory"]["detail"]
    assert not (toy.home / "work").exists()


def test_the_command_that_lists_the_sizes_of_a_full_disk_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMB_HOME", f"{tmp_path}/not yet/created")
    monkeypatch.setattr("llmb.doctor_checks.this_machine.MIN_FREE_GB", 1e9)
    (tmp_path / "not yet").mkdir()
    [check] = [each for each in library.doctor() if each.name == "records"]
    assert not check.ok
    assert subprocess.run(["bash", "-c", check.remedy.split("`")[1]], capture_output=True, check=True).stderr == b""


@pytest.mark.real
def test_a_work_directory_on_a_full_disk_is_an_error(toy: Any, llmb: Llmb) -> None:
    workdir = toy.folder / "full"
    workdir.mkdir()
    with small_disk(workdir):
        with (workdir / "data").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        found = checks(llmb, toy.spec("on it", target={"workdir": str(workdir)}), status=1)
    check = found["work directory"]
    assert (check["ok"], check["detail"]) == (False, f"{workdir}, 0 GB free")
    assert f"`du -xh -d 1 {workdir} | sort -h`" in check["remedy"]


def install_programs(folder: Path, **scripts: str) -> str:
    """Install programs, and return the PATH that finds them first."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.usefixtures("_without_toy_schedulers")
def test_recipes_without_an_image_are_available_although_containers_have_no_gpus(
    toy: Any, llmb: Llmb, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install_programs(toy.folder / "bin", nvidia_smi=f"echo '{H100S}'", docker="echo '27.1.1|/'")
    monkeypatch.setenv("PATH", path)
    found = checks(llmb, status=1)
    assert found["local: gpus in containers"]["ok"] is False
    assert found["local: toy recipes"]["detail"] == "available: judged, tiny"


def test_a_recipe_for_other_gpus_names_those_of_the_target_and_all_published_types(
    toy: Any, llmb: Llmb, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install_programs(toy.folder / "bin", nvidia_smi=f"echo '{H100S}'", nvidia_ctk="", docker="echo '27.1.1|/'")
    monkeypatch.setenv("PATH", path)
    name_target("box", scheduler="local")
    detail = checks(llmb, "box", status=0)["megatron_bridge recipes"]["detail"]
    own = [each for each in detail.split("; ") if "llama3.1-405b@26.06" in each]
    other = [each for each in detail.split("; ") if "kimi-k2@26.06" in each]
    assert len(own) == 1
    assert own[0].endswith("(the job needs 16 to 1024 GPUs, but this machine has 8)")
    published = "published for gb300, gb200, b300, b200"
    assert other == [
        "unavailable: kimi-k2@26.06, nemotron3-super-120b@26.06 "
        f'({published}: this machine has NVIDIA H100 80GB HBM3, not "gb300")'
    ]


def test_a_named_target_is_checked_with_its_own_keys(llmb: Llmb, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    name_target("box", scheduler="local", workdir=str(tmp_path / "file" / "work"))
    found = checks(llmb, "box", status=1)
    assert not found["work directory"]["ok"]
    assert "set `workdir = " in found["work directory"]["remedy"]
    assert "available once the target is fixed: judged, tiny" in found["toy recipes"]["detail"]


@pytest.mark.parametrize(("token", "lacking"), [("", ["llama3.1-70b, llama3.1-8b"]), ("hf_x", [])])
def test_a_recipe_whose_data_need_a_token_is_unavailable_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str, lacking: list[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    name_target("eos", scheduler="slurm", workdir=str(tmp_path / "work"))
    [parts] = [each.detail.split("; ") for each in library.doctor("eos") if each.name == "nemo_launcher recipes"]
    reason = " (HF_TOKEN is not set in the environment of llmb)"
    unavailable = [each.removesuffix(reason) for each in parts if each.endswith(reason)]
    assert unavailable == [f"unavailable: {recipes}" for recipes in lacking]


def test_a_command_that_this_machine_lacks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llmb: Llmb
) -> None:
    (bin_folder := tmp_path / "bin").mkdir()
    for file in (each for folder in ("/bin", "/usr/bin") for each in Path(folder).iterdir()):
        if file.name != "flock" and not (bin_folder / file.name).is_symlink():
            (bin_folder / file.name).symlink_to(file)
    monkeypatch.setenv("PATH", str(bin_folder))
    name_target("box", scheduler="local", runtime="none")
    found = checks(llmb, "box", status=1)
    assert found["commands"]["remedy"] == "install util-linux on this machine"
    assert "available once the target is fixed: judged, tiny" in found["toy recipes"]["detail"]


def test_images_are_printed_as_recipes_write_them(toy: Any, tmp_path: Path) -> None:
    name_target("eos", scheduler="slurm", workdir=str(tmp_path / "work"), runtime="venv")
    found = {each.name: each.detail for each in library.doctor("eos")}
    assert "nvcr.io/nvidia/nemo:24.09" in found["nemo_launcher recipes"]


def test_an_unknown_target_is_one_line(llmb: Llmb) -> None:
    name_target("eos", scheduler="local")
    done = llmb("doctor", "eoss")
    assert done.status == 2
    [line] = done.err.splitlines()
    assert "unknown target 'eoss'" in line
    assert "did you mean 'eos'" in line


def test_every_error_of_a_named_target_is_reported(llmb: Llmb) -> None:
    name_target("box", scheduler="local", workdir="relative", grace="1")
    lines = llmb("doctor", "box").err.splitlines()
    assert len(lines) == 2
    assert all("targets.toml: box." in line for line in lines)


def test_the_remedy_of_a_check_names_the_spec(toy: Any, llmb: Llmb) -> None:
    spec = toy.spec("too large", framework={"task": "a", "task_space_gb": 1e9})
    [remedy] = [each["remedy"] for each in checks(llmb, spec, status=1).values() if each["ok"] is False]
    assert f"or `llmb run '{spec}' --set target.workdir=/path/to/folder`" in remedy


def test_the_keys_of_a_spec_are_set_as_in_a_run(toy: Any, llmb: Llmb) -> None:
    name_target("box", scheduler="local", workdir=str(toy.folder / "box"))
    spec, override = toy.spec(), ("--set", "framework.task=a", "--set", "framework.task_space_gb=1e9")
    assert llmb("doctor", spec).status == 0
    for words in ((spec,), ("box", spec), (spec, "box")):  # the target may be behind the spec
        done = llmb("doctor", *words, *override)
        assert done.status == 1
        assert "free space" in done.out
        assert ("box" in done.out) == ("box" in words)
        assert "--set framework.task=a" in " ".join(done.out.split())
    assert llmb("doctor", spec, "--set", "workload.stepz=3").err.startswith("llmb: --set: workload.stepz: ")
    for words in ((), ("box",)):
        done = llmb("doctor", *words, *override)
        assert (done.status, done.err) == (2, "llmb: --set requires a SPEC; see `llmb doctor --help`\n")


def test_the_items_of_a_run_are_those_of_the_engine_that_works(
    toy: Any, llmb: Llmb, monkeypatch: pytest.MonkeyPatch
) -> None:
    podman = "[ $1 != info ] || echo '4.3.1|/'"
    path = install_programs(toy.folder / "bin", docker="echo 'the daemon is not running' >&2; exit 1", podman=podman)
    monkeypatch.setenv("PATH", path)
    spec = toy.spec(workload={"image": "example/image"}, target={"scheduler": "local"})
    items = {name for name in checks(llmb, spec, status=0) if "image" in name}
    assert items == {"podman image example/image"}


def install(folder: Path, name: str, kind: str, code: str) -> None:
    """Install a plugin with this module."""
    info = folder / f"llmb_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: llmb-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[llmb.{kind}s]\n{name} = llmb_{name}:Plugin\n")
    (folder / f"llmb_{name}.py").write_text(code)


@pytest.mark.usefixtures("_without_toy_schedulers")
def test_broken_plugins_are_named_and_the_rest_is_checked(
    llmb: Llmb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    install(site, "broken", "framework", "1 / 0")
    failing = "    @hookimpl\n    def checks(self): return 1 / 0\n"
    install(site, "failing", "scheduler", f"from llmb import hookimpl\n{LOCAL}class Plugin(Local):\n{failing}")
    monkeypatch.syspath_prepend(site)
    found = checks(llmb, status=1)
    assert "import of llmb_broken:Plugin failed: ZeroDivisionError" in found["plugin broken"]["detail"]
    assert "(llmb-failing 1.0): checks() failed: ZeroDivisionError" in found["failing: plugin"]["detail"]
    assert found["failing: work directory"]["ok"]
    assert "judged, tiny" in found["local: toy recipes"]["detail"]


def test_a_broken_framework_of_the_user_is_a_file_to_correct(llmb: Llmb) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"], "llmb", "frameworks", "mylm.toml")
    file.parent.mkdir(parents=True)
    file.write_text("command = [")
    found = checks(llmb, status=1)["plugin mylm"]
    assert found["detail"].startswith(f"{file}: invalid TOML")
    assert found["remedy"] == "correct the file, or remove it"


LOCAL = "import attrs\nfrom llmb_local.plugin import Local\n"


def test_the_other_schedulers_are_checked_if_one_needs_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = "@attrs.frozen\nclass Options:\n    queue: str\n\n"
    install(tmp_path / "site", "aqueued", "scheduler", f"{LOCAL}{options}class Plugin(Local):\n    options = Options\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    found = {each.name: each for each in library.doctor()}
    assert (found["aqueued: target"].ok, found["local: reachable"].ok) == (None, True)
    assert found["aqueued: target"].detail == "target.queue: required key is missing; expected a string"
    assert "targets.toml" in found["aqueued: target"].remedy


def test_the_table_has_a_line_for_each_check_with_the_remedy_below(llmb: Llmb, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    name_target("box", scheduler="local", workdir=str(tmp_path / "file" / "work"))
    lines = llmb("doctor", "box").out.splitlines()
    [failed] = [number for number, line in enumerate(lines) if line.startswith("failed")]
    assert "work directory" in lines[failed]
    assert "set `workdir = " in lines[failed + 1]
    assert [line.split()[:2] for line in lines if "nemo_launcher recipes" in line] == [["-", "nemo_launcher"]]
