"""The example of a scheduler, end to end: the toy's jobs on hosts that are names of one SSH server."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.examples import SOURCES, write_metadata
from parts.sshd import Sshd, signal_all
from parts.toy import printed_runs

import llmb
from llmb import FrozenMap
from llmb.testing.scheduler_runs import RunContract

TOKEN = "very-secret-77e1c0"

pytestmark = [pytest.mark.real, pytest.mark.slow]


class Hosts:
    """Specs for the hosts a, b and c, and commands with the client's home of their server."""

    def __init__(self, toy: Any, server: Sshd, folder: Path) -> None:
        self.toy = toy
        self.server = server
        self.workdir = folder / "it's shared"
        path = [str(write_metadata(folder / "site")), *map(str, SOURCES), toy.env["PYTHONPATH"]]
        self.env = {**server.env, "PYTHONPATH": os.pathsep.join(path)}
        self.gates = {"gate": str(toy.gate), "gate_step": 2}

    def spec(self, name: str = "toy", hosts: Iterable[str] = "ab", **tables: Any) -> str:
        target = {"scheduler": "hosts", "hosts": list(hosts), "workdir": str(self.workdir)}
        usual: dict[str, dict[str, Any]] = {
            "workload": {"gpus": 4},
            "framework": self.gates,
            "target": {**target, "gpus_per_node": 2, "grace_s": 1},
        }
        return str(self.toy.spec(name, **{key: keys | tables.get(key, {}) for key, keys in usual.items()}))

    def llmb(self, *arguments: str) -> Any:
        return self.toy.llmb(*arguments, env=self.env)

    def runs(self, *arguments: str) -> list[dict[str, Any]]:
        return printed_runs(self.llmb(*arguments, "--json"))

    def start(self, *arguments: str) -> tuple[str, Path]:
        """Detach a run, and wait until all its ranks train: its id and directory."""
        before = {record.name for record in self.toy.records}
        assert self.llmb("run", *arguments, "--detach").returncode == 0
        [run_id] = {record.name for record in self.toy.records} - before
        self.toy.wait(lambda: len(self.toy.journal(f"begin {run_id}")) == 4)
        return run_id, self.workdir / "runs" / run_id

    def lose(self, processes: Callable[[], list[int]]) -> None:
        """Kill all processes of a host, also those that start meanwhile.

        Parents go first: no process of a lost host sees another one end, and records that.
        """

        def without_parents(left: list[int]) -> list[int]:
            return [each for each in left if parent_of(each) not in left]

        self.toy.wait(lambda: not (left := processes()) or signal_all(without_parents(left), signal.SIGKILL))


@pytest.fixture
def hosts(toy: Any, tmp_path: Path) -> Iterator[Hosts]:
    with Sshd(host="a b c", env={"TMPDIR": str(tmp_path)}) as server:
        yield Hosts(toy, server, tmp_path)


class TestContract(RunContract):
    """The jobs of the contract on two hosts, both reached over SSH."""

    scheduler = "hosts"
    target = FrozenMap({"hosts": ["a", "b"], "grace_s": 1})

    @pytest.fixture(autouse=True)
    def _reach_hosts(self, hosts: Hosts, connect: Callable[[str], llmb.Host], monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in hosts.server.env.items():
            monkeypatch.setenv(name, value)
        for path in hosts.env["PYTHONPATH"].split(os.pathsep):
            monkeypatch.syspath_prepend(path)
        monkeypatch.setattr(type(self), "run_on", connect("a"))
        monkeypatch.setattr(type(self), "second_connection", connect("a"))
        monkeypatch.setattr(type(self), "target", FrozenMap({**self.target, "workdir": str(hosts.workdir)}))


def living(directory: Path) -> list[int]:
    """Return the processes of a run, on all its hosts."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            marks = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(mark.startswith(f"LLMB_DETACHED={directory}".encode()) for mark in marks):
            found.append(int(process.name))
    return found


def parent_of(process: int) -> int | None:
    """Return the parent of a process, None if the process has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return None


def test_a_job_runs_on_all_its_hosts_phase_by_phase(hosts: Hosts) -> None:
    hosts.toy.gate.touch()
    hosts.env["TOY_TOKEN"] = TOKEN
    options = {"warm_up": True, "output": True, "task": "data", "task_on": "scheduler"}
    [run] = hosts.runs("run", hosts.spec(framework={**options, "secrets": ["TOY_TOKEN"]}))
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert run["metrics"]["step_time_s"] == 0.5
    assert hosts.server.logins == 2
    work = hosts.workdir / "runs" / run["run_id"]
    for rank in range(4):
        log = f"logs/train.0.{rank}.log"
        assert (Path(run["directory"]) / log).read_bytes() == (work / log).read_bytes()
    recorded = tomllib.loads((Path(run["directory"]) / "run.toml").read_text())["provenance"]
    assert (recorded["env"]["RANK"], "TOY_TOKEN" in recorded["env"]) == ("0", False)
    assert not (work / ".secrets").exists()
    assert hashlib.sha256(TOKEN.encode()).hexdigest() in (work / "token.sha256").read_text()
    begun = [line.rpartition(" ")[2] for line in hosts.toy.journal(f"begin {run['run_id']}")]
    assert begun[0] == "warm-up.0"
    assert sorted(begun[1:]) == [f"train.{rank}" for rank in range(4)]
    assert hosts.toy.wait(lambda: living(work) == [])


def test_a_rank_that_fails_ends_the_job_on_all_hosts(hosts: Hosts) -> None:
    [run] = hosts.runs("run", hosts.spec(framework={"end": "exit 3", "end_step": 2, "end_rank": 3, "gate_step": 3}))
    assert run["state"] == "failed"
    assert run["reason"].startswith("phase train, rank 3 on b: exit code 3 (after ")
    assert hosts.toy.wait(lambda: living(hosts.workdir / "runs" / run["run_id"]) == [])


TORCHRUN = """
import os

for step in range(5):
    print(f"iter {{step}}: time 10.0ms", flush=True)
if os.environ["NODE_RANK"] == "{node}":
    print("Root Cause (first observed failure):\\n[0]:\\n  time      : 2026-11-27_05:00:00")
    print("  host      : localhost\\n  rank      : {rank} (local_rank: 1)\\n  exitcode  : 1 (pid: 123)")
    raise SystemExit(1)
"""
DECLARED = {
    "launch": "node",
    "files": ["train.py"],
    "command": ["python3", "train.py"],
    "log": {"line": "iter {step}: time {time_ms}ms", "first_step": 0},
    "recipe": {"steps": 20, "seq_len": 128, "params": 50e3, "dtypes": ["fp32"], "global_batch_size": 8},
}


@pytest.mark.parametrize(("node", "rank", "host"), [(1, 3, "b"), (0, 0, "a")])
def test_a_launcher_on_each_host_names_the_rank_and_llmb_the_host(
    hosts: Hosts, tmp_path: Path, node: int, rank: int, host: str
) -> None:
    (tmp_path / "train.py").write_text(TORCHRUN.format(node=node, rank=rank))
    (tmp_path / "mylm.toml").write_text(tomli_w.dumps(DECLARED))
    workload = {"recipe": f"{tmp_path}/mylm.toml", "gpu_type": "cpu", "dtype": "fp32"}
    spec = tomllib.loads(Path(hosts.spec()).read_text()) | {"workload": {**workload, "gpus": 4}}
    spec.pop("framework")
    file = tmp_path / "spec.toml"
    file.write_text(tomli_w.dumps(spec))
    [run] = hosts.runs("run", str(file))
    assert run["state"] == "failed"
    assert (run["failure"]["rank"], run["failure"]["host"]) == (rank, host)


def test_a_host_that_is_lost_ends_the_job_and_is_named(hosts: Hosts) -> None:
    run_id, work = hosts.start(hosts.spec(target={"lost_after_s": 20}))
    hosts.lose(lambda: living(work / "nodes"))
    [run] = hosts.runs("attach", run_id)
    assert run["state"] == "failed"
    assert run["reason"].startswith("node failure: host b is lost: no sign of life for 20 s")
    assert living(work) == []


def test_where_the_first_host_is_lost_the_others_end_by_themselves(hosts: Hosts) -> None:
    _, work = hosts.start(hosts.spec(target={"lost_after_s": 20}))
    hosts.lose(lambda: list({*living(work)} - {*living(work / "nodes")}))
    assert hosts.toy.wait(lambda: living(work) == [])
    [run] = hosts.runs("attach")
    assert run["state"] == "lost"


def test_jobs_take_turns_on_hosts_that_they_share_and_cancel_ends_one_everywhere(hosts: Hosts) -> None:
    first, work = hosts.start(hosts.spec())
    for order in ("ba", "bc"):  # taken in one order by all, or two jobs would wait for each other
        assert hosts.llmb("run", hosts.spec(order, hosts=order), "--detach").returncode == 0
    [cancelled] = hosts.runs("cancel", first)
    assert cancelled["state"] == "cancelled"
    assert hosts.toy.wait(lambda: living(work) == [])
    hosts.toy.gate.touch()
    assert [run["state"] for run in hosts.runs("attach")] == ["completed", "completed"]
    inside = 0
    for line in hosts.toy.journal():
        word, run_id, place = line.split()
        if run_id != first and place == "train.0":
            inside += {"begin": 1, "end": -1}[word]
            assert inside <= 1


def test_a_host_that_cannot_be_reached_is_told_before_anything_is_started(hosts: Hosts) -> None:
    done = hosts.llmb("run", hosts.spec(hosts=["a", "127.0.0.1:1"]))
    assert done.returncode == 4
    assert "cannot connect to 127.0.0.1 (127.0.0.1 port 1)" in done.stderr
    assert not list(hosts.workdir.glob("runs/*/started"))


def test_doctor_looks_at_every_host(hosts: Hosts, tmp_path: Path) -> None:
    targets = tmp_path / "config/llmb/targets.toml"
    targets.parent.mkdir(parents=True)
    table = {"scheduler": "hosts", "hosts": ["a", "b", "127.0.0.1:1"], "workdir": str(tmp_path)}
    targets.write_text(tomli_w.dumps({"boxes": table}))
    hosts.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    done = hosts.llmb("doctor", "boxes", "--json")
    assert done.returncode == 1
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (found["b"]["ok"], found["b"]["detail"]) == (True, "reachable")
    assert not found["127.0.0.1:1"]["ok"]
    assert "connection refused" in found["127.0.0.1:1"]["detail"]


def test_more_gpus_than_the_hosts_have_are_refused(hosts: Hosts) -> None:
    done = hosts.llmb("validate", hosts.spec(target={"gpus_per_node": 1}, hosts="abc"))
    assert done.returncode == 2
    assert (
        "workload.gpus: the job needs 4 hosts, but target.hosts has 3; expected fewer GPUs, or more hosts"
        in done.stderr
    )
