"""``llmb run --dry-run``: items, mounts, secrets, the points of a sweep, and variables that jobs do not get."""

from __future__ import annotations

import json
from typing import Any

import pytest
from parts.repository import ROOT

EXPORTED = {"NCCL_IB_HCA": "mlx5_0", "UCX_NET_DEVICES": 'a"b', "NCCL_SOCKET_IFNAME": "eth0", "FI_PROVIDER": ""}


def dry_run(toy: Any, spec: str, *options: str, **env: str) -> str:
    done = toy.llmb("run", spec, "--dry-run", *options, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return str(done.stdout)


def test_items_that_exist_are_told_from_those_to_create(toy: Any) -> None:
    spec = toy.spec(framework={"task": "a"})
    assert "# to create first: toy data toy-" in dry_run(toy, spec)
    [run] = json.loads(dry_run(toy, spec, "--json"))["runs"]
    assert [item["exists"] for item in run["preparation"]] == [False]
    assert toy.llmb("run", spec).returncode == 0
    assert "# exists: toy data toy-" in dry_run(toy, spec)
    [run] = json.loads(dry_run(toy, spec, "--json"))["runs"]
    assert [item["exists"] for item in run["preparation"]] == [True]


def test_items_on_another_host_are_not_checked(toy: Any) -> None:
    target = {"scheduler": "slurm", "host": "nowhere.invalid", "workdir": "/work"}
    spec = toy.spec(framework={"task": "a"}, target=target)
    text = dry_run(toy, spec)
    assert "# first, if not complete: toy data toy-" in text
    assert f"`llmb doctor {spec}` lists the items that exist there" in text
    [run] = json.loads(dry_run(toy, spec, "--json"))["runs"]
    assert [item["exists"] for item in run["preparation"]] == [None]


def test_runs_share_what_they_prepare(toy: Any) -> None:
    target = {"scheduler": "slurm", "host": "nowhere.invalid"}
    spec = toy.spec(
        workload={"gpus": [1, 2]},
        framework={"task": "a"},
        target=target,
        sweep={"target.workdir": ["/one", "/two"]},
    )
    text = dry_run(toy, spec, "--json")
    document = json.loads(text)
    assert [line[:5] for line in text.splitlines()[-6:-2]] == 4 * ["    {"], "one line for each run"
    [(key, item)] = document["preparations"].items()
    assert item.keys() == {"key", "kind", "job", "script", "check", "space_gb", "secrets", "exists"}
    assert (item["key"], "/one/" in item["script"]) == (key, True)
    same, other = {"key": key, "kind": item["kind"], "exists": None}, document["runs"][1]["preparation"][0]
    assert [run["preparation"] == [same] for run in document["runs"]] == [True, False, True, False]
    assert "/two/" in other["script"]
    assert {*other} < {*item}, "only what differs on this target"


@pytest.mark.parametrize(
    ("model", "sizes"), [({"layers": 2}, "2 of 4 layers"), ({"ffn": 64}, "other sizes of the model")]
)
def test_a_proxy_is_named_by_what_differs(toy: Any, model: dict[str, int], sizes: str) -> None:
    spec = toy.spec(model=model)
    assert f"# a proxy: {sizes}\n" in dry_run(toy, spec)


def test_mounts_and_secrets_are_listed(toy: Any) -> None:
    target = {"scheduler": "slurm", "workdir": "/work", "mounts": {"/driver": "/driver:ro"}, "secrets": ["SITE_PASS"]}
    spec = toy.spec(workload={"image": "example.org/x:1"}, target=target, framework={"secrets": ["TOY_TOKEN"]})
    lines = dry_run(toy, spec, TOY_TOKEN="x").splitlines()
    assert {"# mount: /driver at /driver (read only)", "# mount: /work/cache at /work/cache"} <= {*lines}
    assert "# needs TOY_TOKEN in the environment of llmb" in lines
    assert "# needs SITE_PASS in the environment of llmb, where it is not set" in lines
    [run] = json.loads(dry_run(toy, spec, "--json"))["runs"]
    assert run["secrets"] == ["SITE_PASS", "TOY_TOKEN"]


def test_the_points_of_a_sweep_are_a_table(toy: Any) -> None:
    spec = toy.spec(
        target={"scheduler": "slurm", "workdir": "/work"}, workload={"gpus": [2, 4]}, sweep={"env.A": ["x", "y"]}
    )
    title, *rows = [line.split() for line in dry_run(toy, spec).splitlines()[:5]]
    assert title[1:6] == ["recipe", "gpu_type", "dtype", "gpus", "sweep"]
    assert title[6:] == ["nodes", "dp", "micro_batch_size", "global_batch_size", "layers", "seq_len", "steps"]
    assert [row[1:5] for row in rows] == [["toy/tiny", "h100", "bf16", gpus] for gpus in ("2", "2", "4", "4")]
    assert [row[5:8] for row in rows] == [["env.A", "=", value] for value in ("x", "y", "x", "y")]
    assert rows[3][8:] == ["1", "4", "1", "4", "4", "256", "5"]


def test_a_single_run_has_no_table(toy: Any) -> None:
    cost, run, *_ = dry_run(toy, toy.spec()).splitlines()
    assert cost == "# the time limit allows at most 1 GPU hours, without preparation"
    assert run.startswith("# tiny-h100-bf16-1 (repeat 1)")


@pytest.mark.parametrize(("gpu_type", "shown"), [("h100", True), ("cpu", False)])
def test_the_gpu_hours_of_all_runs_are_shown(toy: Any, gpu_type: str, shown: bool) -> None:
    workload = {"gpu_type": gpu_type, "gpus": [2, 4], "repeats": 2, "time_limit": "30m"}
    target = {"scheduler": "slurm", "workdir": "/work"}
    text = dry_run(toy, toy.spec(workload=workload, parallelism={"global_batch_size": 4}, target=target))
    assert ("# the time limits of 4 runs allow at most 6 GPU hours, without preparation\n" in text) is shown
    assert ("GPU hours" in text) is shown


def test_the_command_of_a_declared_framework_is_shown(toy: Any) -> None:
    text = dry_run(toy, str(ROOT / "examples/own-script/spec.toml"), "--set", "workload.steps=30")
    before_script, _, script = text.partition("\n#!")
    assert "exec torchrun " in before_script
    assert before_script.endswith(" --steps=30 --batch=16 --seq=128"), "with the values of the run"
    assert script.count("--steps=30") == 0, "the script of the job does not show them"


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in EXPORTED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NCCL_PROXY", "http://me:hunter2@proxy")


WARNING = (
    "# warning: jobs do not get exported variables: FI_PROVIDER, NCCL_IB_HCA, UCX_NET_DEVICES; to pass them, add to "
    "the target:",
    "# [target.env]",
    '# FI_PROVIDER = ""',
    '# NCCL_IB_HCA = "mlx5_0"',
    '# UCX_NET_DEVICES = "a\\"b"',
)


@pytest.mark.usefixtures("exported")
def test_one_warning_lists_exported_variables_that_jobs_do_not_get(toy: Any) -> None:
    target = {"scheduler": "slurm", "workdir": "/work", "env": {"NCCL_SOCKET_IFNAME": "eth0"}}
    lines = dry_run(toy, toy.spec(workload={"gpus": [1, 2]}, target=target)).splitlines()
    assert tuple(lines[:5]) == WARNING
    assert "\n".join(lines).count("# warning:") == 1
    assert "hunter2" not in "\n".join(lines)


@pytest.mark.usefixtures("exported")
def test_jobs_that_get_exported_variables_need_no_warning(toy: Any) -> None:
    assert "# warning" not in dry_run(toy, toy.spec())
    run = toy.run(framework={"dump": True})
    assert "NCCL_IB_HCA=mlx5_0" in (toy.work(run["run_id"]) / "env.0").read_text()
    in_container = toy.spec(workload={"image": "example.org/x:1"}, target={"runtime": "docker"})
    assert "# warning: jobs do not get exported variables: FI_PROVIDER" in dry_run(toy, in_container)
