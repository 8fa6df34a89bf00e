from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb
from llmb_hosts.job_script import job_script
from llmb_hosts.options import HostsOptions
from llmb_hosts.plugin import LostHosts
from llmb_hosts.submit import submit_jobs


def load(folder: Path, **target: Any) -> llmb.RunPlan:
    """Plan a run of 16 GPUs on hosts with 8 GPUs each. ``target`` overrides keys of [target]."""
    usual = {"scheduler": "hosts", "hosts": ["b", "a", "c"], "workdir": "/it's shared"}
    tables = {
        "workload": {"recipe": "torchtitan/llama3.1-8b", "gpu_type": "h100", "dtype": "bf16", "gpus": 16},
        "parallelism": {"fsdp": 16, "global_batch_size": 32},
        "target": usual | target,
    }
    file = folder / "spec.toml"
    file.write_text(tomli_w.dumps({**tables, "env": {"QUOTED": "it's"}}))
    [run] = llmb.plan(llmb.load(file), registry=llmb.PluginRegistry())
    return run


def test_a_job_takes_as_many_hosts_as_it_needs_and_is_reached_through_the_first(tmp_path: Path) -> None:
    run = load(tmp_path)
    assert run.target.host == "b"
    assert run.script.hosts == ("a",)
    lines = run.script.text.splitlines()
    assert "hosts=(b a)" in lines
    assert "lock_order=(1 0) # equal for all jobs" in lines
    assert """  export QUOTED='it'"'"'s'""" in lines
    assert [line for line in lines if line.startswith("phase train all inside bash ")]
    directory = f"/it's shared/runs/{run.run.id}"
    assert run.script.logs["train"][15] == f"{directory}/logs/train.{{attempt}}.15.log"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"hosts": []}, "target.hosts: invalid list []; expected at least one host name, without duplicates"),
        ({"hosts": ["a", "a"]}, 'target.hosts: invalid list ["a", "a"]; expected'),
        ({"hosts": ["a"]}, "workload.gpus: the job needs 2 hosts, but target.hosts has 1"),
        ({"host": "c"}, 'target.host: "c" is not the first of target.hosts, through which llmb reaches the hosts'),
        ({"lost_after_s": 0}, "target.lost_after_s: invalid value 0; expected a positive integer"),
    ],
)
def test_invalid_keys_are_reported(tmp_path: Path, target: dict[str, Any], message: str) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        load(tmp_path, **target)
    assert message in str(raised.value)


def test_an_image_is_rejected_unless_runtime_is_none(tmp_path: Path) -> None:
    image = llmb.Environment(base=llmb.Image(ref="example.org/titan:1"))
    placed = load(tmp_path)
    hosts = llmb.PluginRegistry().scheduler("hosts")
    with pytest.raises(llmb.SpecError, match=r"runs in the image example.org/titan:1"):
        hosts.prepare_env(environment=image, target=placed.target)
    bare = load(tmp_path, runtime="none")
    assert hosts.prepare_env(environment=image, target=bare.target) == ()


class Blind:
    """A host on which no file exists. Its peers are like it."""

    def __init__(self) -> None:
        self.scripts: list[str] = []

    def run(self, script: str, *, timeout_s: float = 60.0) -> llmb.CommandResult:
        self.scripts.append(script)
        return llmb.CommandResult(exit_code=0, stdout="".join(f"{line.split()[-1]}\n" for line in script.splitlines()))

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        return

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        return {}

    def peer(self, name: str) -> Blind:
        return self


def test_a_job_is_rejected_if_a_host_does_not_see_its_directory() -> None:
    script = llmb.Script(id="job", directory="/home/me/runs/job", text="", hosts=("b",))
    host = Blind()
    [handle] = submit_jobs([script], host).values()
    assert handle.refused == "b does not see /home/me/runs/job"
    assert (
        handle.remedy
        == "name a folder that all of target.hosts share: `llmb run SPEC --set target.workdir=/path/to/folder`"
    )
    assert host.scripts == ["[ -e /home/me/runs/job/nodes/1/host ] || echo job"]


def test_a_lost_host_is_a_node_failure() -> None:
    text = b"llmb-hosts: host b is lost: no sign of life for 60 s\nllmb-hosts: host a: its part was stopped\n"
    assert [notice.kind for notice in LostHosts().feed(text) if isinstance(notice, llmb.Notice)] == ["node failure"]


def script(run_dir: Path, *hosts: str) -> str:
    """Return the script of a job in a virtual environment that prints variables of its ranks."""
    job = llmb.Job(
        id="a",
        directory=str(run_dir),
        phases=(
            llmb.Phase(name="train", command=("sh", "-c", 'echo "$PYTHONPATH ${PYTHONHOME-} $RANK $MASTER_ADDR"')),
        ),
        nodes=len(hosts),
        tasks_per_node=1,
        gpus_per_node=0,
        time_limit_s=60,
        environment=llmb.Environment(base=llmb.Venv(lock="", python=">=3.12")),
        env=llmb.FrozenMap({"PYTHONPATH": "/of/the job", "RANK": "7", "MASTER_ADDR": "7"}),
    )
    options = HostsOptions(hosts=hosts, master_addr="a")
    return job_script(job, hosts, llmb.Target(scheduler="hosts", workdir="/work", options=options))


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a\nb", "$(touch x)"])
def test_a_host_that_is_no_name_is_rejected(tmp_path: Path, host: str) -> None:
    with pytest.raises(llmb.SpecError, match=r"target.hosts\[1\]: invalid value"):
        load(tmp_path, hosts=["a", host])


def test_ranks_see_the_variables_of_the_job_not_those_of_the_login(tmp_path: Path) -> None:
    login = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONHOME": "/left", "PYTHONPATH": "/left"}
    subprocess.run(["bash", "-c", script(tmp_path, "a")], cwd=tmp_path, env=login, check=True)
    assert (tmp_path / "logs/train.0.0.log").read_text() == "/of/the job  0 a\n"


def test_jobs_of_logins_with_different_temporary_folders_use_a_host_one_after_the_other(tmp_path: Path) -> None:
    """Some sites give each login a folder of its own in TMPDIR."""
    (tmp_path / ".cache").mkdir()
    with (tmp_path / ".cache/llmb-hosts-a.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (tmp_path / "run").mkdir()
        env = os.environ | {"HOME": str(tmp_path), "TMPDIR": str(tmp_path / "run")}
        job = subprocess.Popen(["bash", "-c", script(tmp_path / "run", "a")], cwd=tmp_path / "run", env=env)
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(2)
    assert job.wait(60) == 0


def test_a_host_ends_its_part_when_the_first_host_was_killed(tmp_path: Path) -> None:
    (tmp_path / "nodes/1").mkdir(parents=True)
    (tmp_path / "ended").write_text("137\tcancelled\t\n")
    part = subprocess.run(["bash", "-c", script(tmp_path, "a", "b")], cwd=tmp_path / "nodes/1", timeout=300)
    assert part.returncode == 143
