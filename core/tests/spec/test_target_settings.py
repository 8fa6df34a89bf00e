"""Variables, mounts and secrets of a target: merged by key, recorded, and comparable with the baseline."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb
from llmb.plan_runs import plan
from llmb.spec.spec_of_run import build_run_toml

TARGETS = """
[eos]
scheduler = "slurm"
host = "eos"
workdir = "/work"
[eos.env]
NCCL_IB_HCA = "mlx5_0"
HTTPS_PROXY = "http://proxy:3128"
[eos.mounts]
"/usr/local/driver" = "/opt/driver:ro"
"/site" = "/site"
"""
SET_BY_RECIPE = "NCCL_IB_SL"  # of maxtext/llama2-70b


def only_plan(workload: llmb.Workload) -> llmb.RunPlan:
    [found] = plan(workload)
    return found


def test_targets_file_target_and_spec_are_merged_by_key(spec: Any, write_targets: Any) -> None:
    write_targets(TARGETS)
    target = {"name": "eos", "env": {"NCCL_IB_HCA": "mlx5_1"}, "mounts": {"/site": "/mine"}}
    spec.big(env={"NCCL_DEBUG": "WARN"}, mounts={"/data": "/opt/driver"})
    found = only_plan(llmb.load({**tables_of(spec), "target": target}))
    assert dict(found.target.env) == {"NCCL_IB_HCA": "mlx5_1", "HTTPS_PROXY": "http://proxy:3128"}
    env = {name: found.job.env[name] for name in ("NCCL_IB_HCA", "HTTPS_PROXY", "NCCL_DEBUG")}
    assert env == {"NCCL_IB_HCA": "mlx5_1", "HTTPS_PROXY": "http://proxy:3128", "NCCL_DEBUG": "WARN"}
    mounts = {mount.target: mount.source for mount in found.job.mounts}
    assert mounts.items() >= {"/mine": "/site", "/opt/driver": "/data"}.items()
    assert "/site" not in mounts
    assert "NCCL_IB_HCA=mlx5_1" in found.script.text


def tables_of(spec: Any) -> dict[str, Any]:
    return tomllib.loads(spec.file.read_text())


@pytest.mark.parametrize(
    ("target", "env", "differences"),
    [
        ({"env": {"NCCL_IB_HCA": "mlx5_0"}, "mounts": {"/drv": "/drv"}}, {}, ()),
        ({"env": {SET_BY_RECIPE: "7"}}, {}, (f"target.env.{SET_BY_RECIPE}",)),
        ({"env": {SET_BY_RECIPE: "7"}}, {SET_BY_RECIPE: "5"}, (f"env.{SET_BY_RECIPE}",)),
    ],
)
def test_a_run_is_comparable_unless_its_target_changes_a_variable_of_the_recipe(
    spec: Any, target: dict[str, Any], env: dict[str, str], differences: tuple[str, ...]
) -> None:
    spec.big(target={"scheduler": "slurm", "host": "eos", "workdir": "/work", **target}, env=env)
    found = only_plan(spec.load())
    assert found.run.differences == differences
    assert {name: found.job.env[name] for name in env} == env


def test_the_recipes_own_value_in_the_target_is_no_difference(spec: Any) -> None:
    place = {"scheduler": "slurm", "host": "eos", "workdir": "/work"}
    published = only_plan(spec.big(target=place).load()).job.env[SET_BY_RECIPE]
    found = only_plan(spec.big(target={**place, "env": {SET_BY_RECIPE: published}}).load())
    assert found.run.differences == ()


def test_the_settings_are_for_the_tasks_of_a_run_too(spec: Any) -> None:
    settings = {"env": {"HTTPS_PROXY": "http://it's:3128"}, "secrets": ["SITE_PASS"]}
    place = {"scheduler": "slurm", "host": "eos", "workdir": "/work", **settings}
    [image] = only_plan(spec.big(target=place).load()).tasks
    assert image.on == "scheduler"
    assert """HTTPS_PROXY='http://it'"'"'s:3128'""" in image.script.text
    assert image.script.secrets == ("SITE_PASS",)
    [venv] = only_plan(spec.usual(target=settings).load()).tasks
    assert venv.on == "host"
    assert """export HTTPS_PROXY='http://it'"'"'s:3128'\n""" in venv.script.text
    assert venv.script.secrets == ("SITE_PASS",)


def test_the_record_has_the_settings_of_the_target(spec: Any, write_targets: Any, tmp_path: Path) -> None:
    write_targets(TARGETS)
    tables = {**tables_of(spec.big()), "target": {"name": "eos", "secrets": ["SITE_PASS"]}}
    [placed] = llmb.load(tables).runs
    recorded = build_run_toml(placed.with_run_id("a"), {})
    assert recorded["target"]["env"] == {"NCCL_IB_HCA": "mlx5_0", "HTTPS_PROXY": "http://proxy:3128"}
    assert recorded["target"]["mounts"] == {"/usr/local/driver": "/opt/driver:ro", "/site": "/site"}
    assert recorded["target"]["secrets"] == ["SITE_PASS"]
    write_targets("")  # the record needs no targets file
    file = tmp_path / "run.toml"
    file.write_text(tomli_w.dumps(recorded))
    [back] = llmb.load(file).runs
    assert back.target == placed.target


@pytest.mark.parametrize(
    ("env", "key"),
    [({"B": 2}, "target.env.B"), ({"RANK": "1"}, "target.env.RANK"), ({"XLA_FLAGS": ""}, "target.env.XLA_FLAGS")],
)
def test_an_invalid_variable_is_an_error_at_its_key(spec: Any, env: dict[str, Any], key: str) -> None:
    place = {"scheduler": "slurm", "host": "eos", "workdir": "/work"}
    assert set(spec.big(target={**place, "env": env}).errors()) == {key}


def test_an_error_of_a_named_target_names_the_targets_file(spec: Any, write_targets: Any) -> None:
    file = write_targets(TARGETS + '"/x,y" = "/x"\n')
    tables = {**tables_of(spec.big()), "target": {"name": "eos", "mounts": {"/own": "/own"}}}
    found = spec.write(tomli_w.dumps(tables)).errors()
    assert {key: error.file for key, error in found.items()} == {'eos.mounts."/x,y"': str(file)}


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"env": {"HTTPS_PROXY": "http://me:hunter2@proxy:3128"}}, "env.HTTPS_PROXY"),
        ({"target": {"env": {"HTTPS_PROXY": "http://me:hunter2@proxy:3128"}}}, "target.env.HTTPS_PROXY"),
        ({"target": {"env": {"HF_TOKEN": "hunter2"}}}, "target.env.HF_TOKEN"),
        ({"target": {"workdir": "ftp://me:hunter2@host/x"}}, "target.workdir"),
        ({"framework": {"config": {"path": ["s3://me:hunter2@host/x"]}}}, "framework.config.path[0]"),
        ({"workload": {"image": "docker://me:hunter2@host/x:1"}}, "workload.image"),
    ],
)
def test_a_password_is_rejected_and_not_shown(spec: Any, run_llmb: Any, table: dict[str, Any], key: str) -> None:
    assert key in {**spec.usual(**table).errors()}
    done = run_llmb("validate", spec.file)
    assert done.returncode == 2
    assert "hunter2" not in done.stdout + done.stderr
    if "HTTPS_PROXY" in key:
        assert "export HTTPS_PROXY before running llmb, and add it to target.secrets" in done.stderr


def test_a_url_without_a_password_is_no_secret(spec: Any) -> None:
    spec.usual(target={"env": {"UV_INDEX_URL": "https://mirror:8080/simple", "REPO": "ssh://git@host:22/x"}})
    assert dict(only_plan(spec.load()).job.env).items() >= {"REPO": "ssh://git@host:22/x"}.items()
