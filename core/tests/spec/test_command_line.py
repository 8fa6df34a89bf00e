"""``llmb validate`` and ``llmb run --dry-run``: their output and exit codes; they touch nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts import forked

import llmb
from llmb.cli.spec_in_remedies import SpecArguments
from llmb.cli.views.dry_run import print_plans

JOB_KEYS = {
    "image",
    "mpi",
    "sidecars",
    "nodes",
    "tasks_per_node",
    "gpus_per_node",
    "time_limit_s",
    "env",
    "mounts",
    "files",
    "phases",
}
PHASE_KEYS = {"name", "command", "env", "ranks", "measured", "outputs"}


def nothing_touched(folder: Path) -> bool:
    home = Path(os.environ["LLMB_HOME"])
    return not home.exists() and {path.name for path in folder.iterdir()} <= {"spec.toml", "site"}


def test_validate_prints_the_number_of_runs(spec: Any, run_llmb: Any, tmp_path: Path) -> None:
    spec.usual(workload={"gpus": [1, 2]})
    done = run_llmb("validate", spec.file)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{spec.file}: valid, 2 runs\n", "")
    assert run_llmb.json("validate", spec.file)["file"] == str(spec.file)
    assert nothing_touched(tmp_path)


@pytest.mark.parametrize("command", [["validate"], ["run"], ["run", "--dry-run"]])
def test_each_error_is_one_line_and_the_exit_code_is_2(
    spec: Any, run_llmb: Any, tmp_path: Path, command: list[str]
) -> None:
    spec.usual(workload={"gpus": "64"}, target={"lok": 1})
    done = run_llmb.process(*command, spec.file, "--set", "model.layer=3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f'llmb: {spec.file}: workload.gpus: invalid value "64"; expected a positive integer',
        "llmb: --set: model.layer: unknown key; expected one of layers, hidden, ffn, heads, query_groups, "
        "vocab, seq_len, experts, top_k, "
        "expert_ffn, shared_expert_ffn, dense_layers, latent_size, head_size, sliding_window, full_attention_every, "
        "layer_pattern, mtp_depth, mtp_pattern, mla, mamba (did you mean 'layers'?)",
        f"llmb: {spec.file}: target.lok: unknown key; expected one of runtime, container, max_parallel, "
        "lock, grace_s, machine_gpus, scheduler, name, host, workdir, shared, max_jobs, gpus_per_node, env, mounts, "
        "secrets (did you mean 'lock'?)",
    ]
    assert nothing_touched(tmp_path)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["workload.gpus=1", "workload.gpus=2"], "--set: workload.gpus: given twice: 1 and 2; give it once"),
        (["workload.gpus=1", "workload.gpus=1"], "--set: workload.gpus: given twice: 1 and 1; give it once"),
        (["env.A=x", 'env."A"="y"'], '--set: env.A: given twice: "x" and "y"; give it once'),
        (["env.A=x", "env={A='y', B='z'}"], '--set: env.A: given twice: "x" and "y"; give it once'),
        (["env={A='y'}", " env . A = 'z'"], '--set: env.A: given twice: "y" and "z"; give it once'),
        (["env.HF_TOKEN=x", "env.HF_TOKEN=y"], "--set: env.HF_TOKEN: given twice; give it once"),
        (["env.GIT_PAT=x", "env.GIT_PAT=y"], "--set: env.GIT_PAT: given twice; give it once"),
        (["env.TOKEN={a='x'}", "env.TOKEN={a='y'}"], "--set: env.TOKEN.a: given twice; give it once"),
        (["model=3", "model.layers=2"], "--set: model: contradicts model.layers; give one of them"),
        (["model.layers=2", "model=3"], "--set: model.layers: contradicts model; give one of them"),
        (
            ["sweep.parallelism.fsdp=[1]", 'sweep."parallelism.fsdp"=[2]'],
            "--set: sweep.parallelism.fsdp: given twice: [1] and [2]; give it once",
        ),
    ],
)
def test_a_key_that_is_set_twice_is_an_error(spec: Any, run_llmb: Any, overrides: list[str], message: str) -> None:
    spec.usual()
    words = [word for override in overrides for word in ("--set", override)]
    for command in ("validate", "run"):
        done = run_llmb(command, spec.file, *words)
        assert done.returncode == 2
        assert f"llmb: {message}" in done.stderr.splitlines()


def test_bytes_that_are_not_utf8_are_an_error(spec: Any, run_llmb: Any) -> None:
    done = run_llmb("run", spec.usual().file, "--set", os.fsdecode(b"env.A=\xff"))
    assert (done.returncode, done.stderr) == (2, "llmb: --set: env.A: not text in UTF-8\n")


def test_a_key_that_is_set_twice_causes_no_second_error(spec: Any, run_llmb: Any) -> None:
    spec.usual()
    done = run_llmb("validate", spec.file, "--set", "workload.steps=100000", "--set", "workload.steps=1")
    assert done.stderr.splitlines() == ["llmb: --set: workload.steps: given twice: 100000 and 1; give it once"]


def test_different_keys_of_one_table_can_be_set(spec: Any, run_llmb: Any) -> None:
    spec.usual()
    done = run_llmb("validate", spec.file, "--set", "env.A=x", "--set", "env={B='y'}", "--set", "env={}")
    assert (done.returncode, done.stderr) == (0, "")


def test_errors_as_json_are_one_document(spec: Any, run_llmb: Any, tmp_path: Path) -> None:
    spec.usual(workload={"gpu_type": "npu7"}, mounts={"a": "b"})
    for command in (["validate"], ["run"], ["run", "--dry-run"]):
        errors = run_llmb.json(*command, spec.file, status=2)["errors"]
        assert [error.keys() for error in errors] == [{"message", "file", "key", "expected", "nearest"}] * 2
        expected = errors[1].pop("expected")
        assert expected.startswith("one of a100, b200, ")
        assert expected.endswith('source = "the data sheet"\n')
        assert errors[1] == {
            "message": "unknown GPU type npu7",
            "file": str(spec.file),
            "key": "workload.gpu_type",
            "nearest": None,
        }
    assert nothing_touched(tmp_path)


def test_an_error_of_a_scheduler_names_the_file(spec: Any, run_llmb: Any) -> None:
    done = run_llmb("validate", spec.big(target={"runtime": "venv"}).file)
    assert done.returncode == 2
    assert done.stderr.startswith(f"llmb: {spec.file}: ")
    assert done.stderr.count("\n") == 1


def test_a_dry_run_as_json_has_the_job_the_script_and_the_preparation(spec: Any, run_llmb: Any, tmp_path: Path) -> None:
    spec.usual(workload={"repeats": 2}, mounts={"/a": "/x:ro"}, env={"NAME": "value with spaces"})
    document = run_llmb.json("run", spec.file, "--dry-run")
    assert document.keys() == {"preparations", "runs"}
    assert all(task.keys() >= {"key", "kind", "job", "script", "check"} for task in document["preparations"].values())
    assert [run["repeat"] for run in document["runs"]] == [1, 2]
    for run in document["runs"]:
        assert run.keys() >= {"recipe", "gpu_type", "dtype", "gpus", "steps", "job", "script", "preparation"}
        assert run["job"].keys() == JOB_KEYS
        assert all(phase.keys() == PHASE_KEYS for phase in run["job"]["phases"])
        assert all(isinstance(word, str) for phase in run["job"]["phases"] for word in phase["command"])
        assert run["job"]["mounts"] == [{"source": "/a", "target": "/x", "read_only": True}]
        assert run["job"]["env"]["NAME"] == "value with spaces"
        assert [task["key"] for task in run["preparation"]] == list(document["preparations"])
        assert run["script"].startswith("#!")
    assert nothing_touched(tmp_path)


def test_a_dry_run_for_people_shows_the_script(spec: Any, run_llmb: Any, tmp_path: Path) -> None:
    done = run_llmb("run", spec.usual().file, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# llama2-tiny-cpu-fp32-1 (repeat 1): maxtext/llama2-tiny, release 0.2.5\n")
    assert done.stdout.splitlines()[1] == "# 1 node x 1 rank, 50 steps, global batch size 4"
    assert "\n#!/usr/bin/env bash\n" in done.stdout
    assert nothing_touched(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--dry-run", "--detach"],
        ["run", "--check", "--detach"],
        ["recipes", "--toml"],
    ],
)
def test_an_option_that_would_be_ignored_is_rejected(spec: Any, run_llmb: Any, arguments: list[str]) -> None:
    address = "maxtext/llama2-tiny" if arguments[0] == "recipes" else spec.usual().file
    [error] = run_llmb.json(*arguments, address, status=2)["errors"]
    given = " and ".join(arguments[-2:] if len(arguments) > 2 else ["--toml", "--json"])
    assert f"{given} cannot be combined" in error["message"]


def test_whether_a_verdict_is_checked_is_for_the_command_line_of_every_run(spec: Any, run_llmb: Any) -> None:
    assert run_llmb("run", spec.usual().file, "--dry-run", "--check").returncode == 0


def test_a_dry_run_speaks_of_a_baseline_only_where_there_is_one(spec: Any, run_llmb: Any) -> None:
    changed = {"parallelism": {"micro_batch_size": 1}}
    assert "\n# differs from the recipe: " in run_llmb("run", spec.usual(**changed).file, "--dry-run").stdout
    big = spec.big(**changed, target={"gpus_per_node": 64})
    assert "\n# not comparable with the baseline: " in run_llmb("run", big.file, "--dry-run").stdout


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"tool": "nsys"}, "profiled with nsys, steps 20 to 30: recorded without a verdict"),
        ({"tool": "nsys", "stop_step": 25}, "profiled with nsys, steps 20 to 25: recorded without a verdict"),
        ({"tool": "nccl-trace"}, "profiled with nccl-trace: recorded without a verdict"),
    ],
)
def test_a_dry_run_prints_that_a_capture_has_no_verdict(
    spec: Any, capsys: pytest.CaptureFixture[str], profile: dict[str, Any], message: str
) -> None:
    nemo = {"recipe": "nemo_launcher/llama3.1-70b", "gpu_type": "h100", "dtype": "fp8", "gpus": 64}
    spec.write(tomli_w.dumps({"workload": nemo, "profile": profile, "target": {"scheduler": "slurm", "workdir": "/w"}}))
    print_plans(llmb.plan(spec.load()), SpecArguments("spec.toml"), (), {})
    assert f"\n# {message}\n" in capsys.readouterr().out


def test_a_dry_run_prints_that_the_option_replaces_the_target(spec: Any, run_llmb: Any, write_targets: Any) -> None:
    write_targets('[box]\nscheduler = "local"\n')
    file = spec.usual(target={"lock": "/x"}).file
    note = "target box replaces the spec's [target] (scheduler, lock)"
    assert run_llmb("run", file, "--dry-run", "--target", "box").stdout.splitlines()[0] == f"# {note}"
    for arguments in (("run", file, "--dry-run", "--json"), ("validate", file), ("validate", file, "--json")):
        assert run_llmb(*arguments, "--target", "box").stderr == f"llmb: {note}\n"


@pytest.mark.parametrize("content", [b"\xff", b"", b"[workload", None])
def test_an_unusable_file_is_one_line(spec: Any, run_llmb: Any, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        spec.file.write_bytes(content)
    done = run_llmb("run", spec.file if content is not None else tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"llmb: {spec.file if content is not None else tmp_path}: ")
    assert done.stderr.count("\n") == 1
    assert nothing_touched(tmp_path)


def without_privilege(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``llmb`` as a process for which permissions count, even if root runs the tests."""
    words = [*map(str, arguments)]
    return forked.run_llmb(words, env={**os.environ, **env}, without_rights=os.geteuid() == 0)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder that a test can close, and open it at the end."""
    folder = tmp_path / "closed"
    folder.mkdir()
    yield folder
    folder.chmod(0o700)


def test_a_spec_without_permission_is_one_line(spec: Any) -> None:
    spec.usual().file.chmod(0)
    done = without_privilege("validate", spec.file)
    assert (done.returncode, done.stderr) == (2, f"llmb: {spec.file}: permission denied\n")


def test_a_spec_in_a_folder_without_permission_is_one_line(spec: Any, closed: Path) -> None:
    file = spec.usual().file.rename(closed / "spec.toml")
    closed.chmod(0)
    done = without_privilege("validate", file)
    assert (done.returncode, done.stderr) == (2, f"llmb: {file}: permission denied\n")


def test_a_configuration_folder_without_permission_is_one_line(spec: Any, closed: Path) -> None:
    closed.chmod(0)
    done = without_privilege("validate", spec.usual().file, "--target", "box", XDG_CONFIG_HOME=str(closed))
    file = closed / "llmb" / "targets.toml"
    assert (done.returncode, done.stderr) == (2, f"llmb: {file}: permission denied\n")


def test_a_home_that_cannot_be_a_work_directory_is_one_error(
    spec: Any, run_llmb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMB_HOME", f"{tmp_path}/a\nb")
    done = run_llmb("validate", spec.usual().file)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "target.workdir: invalid value" in line
    assert "which follows from LLMB_HOME" in line
