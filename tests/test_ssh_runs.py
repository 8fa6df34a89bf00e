"""End-to-end runs on a host over SSH: the jobs of the toy framework as detached processes there."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S
from parts.network import Network
from parts.screen import Screen
from parts.sshd import Sshd
from parts.toy import printed_runs

import llmb
from llmb.hosts.work_directory import check_work_directory

pytestmark = pytest.mark.real
TOKEN = "very-secret-5be02a"


class Remote:
    """Specs with a work directory on the server, and commands with the HOME of its client."""

    def __init__(self, toy: Any, server: Sshd, folder: Path) -> None:
        self.toy = toy
        self.server = server
        self.workdir = folder / "it's $(touch x)"
        self.env = server.env

    def spec(self, name: str = "remote", **tables: Any) -> str:
        lock = str(self.workdir.parent / "remote.lock")  # of another machine
        target = {"scheduler": "detached", "host": self.server.host, "workdir": str(self.workdir), "lock": lock}
        gates = {"gate": str(self.toy.gate), "gate_step": 2}
        return str(
            self.toy.spec(name, **{**tables, "target": target, "framework": gates | tables.get("framework", {})})
        )

    def start(self, *arguments: str) -> Any:
        return self.toy.start(*arguments, env=self.env)

    def llmb(self, *arguments: str) -> Any:
        return self.toy.llmb(*arguments, env=self.env)

    def runs(self, *arguments: str) -> list[dict[str, Any]]:
        return printed_runs(self.llmb(*arguments, "--json"))


@pytest.fixture
def remote(toy: Any, server: Sshd, tmp_path: Path) -> Remote:
    return Remote(toy, server, tmp_path)


def check_completed(run: dict[str, Any], remote: Remote) -> None:
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert run["metrics"]["step_time_s"] == 0.5
    log = f"{remote.workdir}/runs/{run['run_id']}/logs/train.0.0.log"
    assert (Path(run["directory"]) / "logs/train.0.0.log").read_bytes() == Path(log).read_bytes()


@pytest.mark.smoke
def test_a_sweep_uses_one_connection(remote: Remote) -> None:
    remote.toy.gate.touch()
    options = {"task": "data", "warm_up": True, "output": True}
    runs = remote.runs("run", remote.spec(workload={"repeats": 3}, framework=options))
    assert len(runs) == 3
    for run in runs:
        check_completed(run, remote)
    assert remote.server.logins == 1
    assert len(remote.toy.journal("task-begin")) == 1
    assert not Path("x").exists()
    assert not any((remote.workdir / "runs").rglob("x"))


def test_no_connection_stays_open_if_a_session_fails_or_is_never_driven(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in remote.env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(llmb.SpecError, match="TOY_TOKEN is not set"):
        llmb.start(llmb.load(remote.spec(framework={"task": "data", "task_secrets": ["TOY_TOKEN"]})))
    remote.toy.wait(lambda: remote.server.sessions == [])
    with llmb.start(llmb.load(remote.spec())) as session:
        assert remote.server.sessions
    remote.toy.wait(lambda: remote.server.sessions == [])
    logins = remote.server.logins
    [record] = remote.toy.records
    (record / "cancel").symlink_to("nowhere/cancel")  # it cannot be written
    with pytest.raises(llmb.RecordError):
        llmb.cancel(session.run_ids)
    assert remote.server.logins == logins


@pytest.mark.slow
def test_a_detached_run_continues_and_is_followed_by_another_process(remote: Remote) -> None:
    started = remote.llmb("run", remote.spec(), "--detach")
    assert started.returncode == 0, started.stderr
    remote.toy.wait_for_journal("begin")
    remote.toy.wait(lambda: remote.server.sessions == [])
    [record] = remote.toy.records
    follower = remote.start("logs", record.name, "-f")
    remote.toy.gate.touch()
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert out == (record / "logs/train.0.0.log").read_text(), err
    [run] = remote.runs("attach", record.name)
    check_completed(run, remote)


@pytest.mark.slow
def test_cancel_ends_one_run_only(remote: Remote) -> None:
    spec = remote.spec()
    for _ in range(2):
        assert remote.llmb("run", spec, "--detach").returncode == 0
    first, second = (record.name for record in remote.toy.records)
    [cancelled] = remote.runs("cancel", first)
    assert cancelled["state"] == "cancelled"
    remote.toy.gate.touch()
    [other] = remote.runs("attach", second)
    check_completed(other, remote)


@pytest.mark.smoke
def test_secrets_are_in_a_file_that_only_the_owner_can_read(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    remote.env["TOY_TOKEN"] = TOKEN
    running = remote.start("run", remote.spec(framework={"secrets": ["TOY_TOKEN"], "dump": True}), "--json")
    remote.toy.wait_for_journal("begin")
    files = [file for folder in (remote.workdir, remote.toy.home) for file in folder.rglob("*") if file.is_file()]
    assert not any(TOKEN.encode() in _bytes(file) for file in files if not file.name.startswith("env."))
    lines = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
    assert not any(TOKEN.encode() in _bytes(line) for line in lines)
    remote.toy.gate.touch()
    out, err = running.communicate(timeout=DEADLINE_S)
    check_completed(json.loads(out)["runs"][0], remote)
    assert TOKEN not in out + err


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


# failures of the connection


@pytest.mark.parametrize("command", ["run", "attach"])
def test_an_unreachable_host_is_reported_before_the_first_command(remote: Remote, command: str) -> None:
    spec = remote.spec()
    remote.server.stop()
    if command == "attach":
        remote.server.start()
        assert remote.llmb("run", spec, "--detach").returncode == 0
        remote.server.stop()
    done = remote.llmb(command, *([spec] if command == "run" else []))
    assert done.returncode == 4
    [line] = done.stderr.splitlines()
    assert line.startswith("llmb: cannot connect to cluster (127.0.0.1 port ")
    assert "connection refused" in line
    assert len(remote.toy.records) == (command == "attach")
    remote.server.start()
    remote.toy.gate.touch()
    if command == "attach":
        check_completed(remote.runs("attach")[0], remote)


def test_llmb_shows_that_it_connects_to_a_host_that_responds_late(remote: Remote) -> None:
    remote.toy.gate.touch()
    with Network(remote.server.address, remote.server.port) as network:
        remote.server.write_config(port=network.port)
        network.silence()
        connecting = remote.start("run", remote.spec(), "--json")
        remote.toy.wait_for_message(connecting, "connecting to cluster ...")
        screen = Screen.of_llmb("run", remote.spec("other"), env={**remote.toy.env, **remote.env})
        screen.wait_for("connecting to cluster ...")
        assert not remote.toy.records, "the host has not responded"
        network.mend()
        check_completed(json.loads(connecting.communicate(timeout=DEADLINE_S)[0])["runs"][0], remote)
        assert screen.end() == 0


def test_llmb_waits_for_a_server_that_restarts(remote: Remote) -> None:
    running = remote.start("run", remote.spec(), "--json")
    remote.toy.wait_for_state("running")
    remote.server.stop()
    message = remote.toy.wait_for_message(running, "retrying")
    assert message.startswith("llmb: c")
    remote.server.start()
    assert "cluster" in remote.toy.wait_for_message(running, "responds again")
    remote.toy.gate.touch()
    check_completed(json.loads(running.communicate(timeout=DEADLINE_S)[0])["runs"][0], remote)
    assert len(remote.toy.journal("begin")) == 1


@pytest.mark.smoke
def test_llmb_waits_for_a_network_that_is_cut(remote: Remote) -> None:
    server = remote.server
    with Network(server.address, server.port) as network:
        server.write_config(port=network.port)
        running = remote.start("run", remote.spec(), "--json")
        remote.toy.wait_for_state("running")
        network.cut()
        assert remote.toy.wait_for_message(running, "retrying")
        remote.toy.gate.touch()
        remote.toy.wait_for_journal("end")
        network.mend()
        check_completed(json.loads(running.communicate(timeout=DEADLINE_S)[0])["runs"][0], remote)


def test_llmb_waits_for_a_network_that_is_cut_before_the_first_submission(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in remote.env.items():
        monkeypatch.setenv(name, value)
    server = remote.server
    remote.toy.gate.touch()
    with Network(server.address, server.port) as network:
        server.write_config(port=network.port)
        with llmb.start(llmb.load(remote.spec())) as session:
            network.cut()
            for event in session:
                if isinstance(event, llmb.TargetLost):
                    network.mend()
            [run] = session.results
        check_completed(run.as_dict(), remote)
        assert len(remote.toy.journal("begin")) == 1


@pytest.mark.parametrize("mended", [True, False])
def test_a_network_that_is_cut_while_the_target_is_checked_is_tried_again(
    remote: Remote, monkeypatch: pytest.MonkeyPatch, mended: bool
) -> None:
    for name, value in remote.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("llmb.drive.start.RETRIED_S", DEADLINE_S if mended else 2.0)
    remote.toy.gate.touch()
    activities: list[str] = []
    with Network(remote.server.address, remote.server.port) as network:
        remote.server.write_config(port=network.port)

        def check(workdir: str, host: llmb.Host, *arguments: Any, **options: Any) -> None:
            assert host.run("true").exit_code == 0
            if not any("again" in each for each in activities):
                network.cut()
            check_work_directory(workdir, host, *arguments, **options)

        def report(activity: str) -> None:
            activities.append(activity)
            if "again" in activity and mended:
                network.mend()

        monkeypatch.setattr("llmb.drive.start.check_work_directory", check)
        if not mended:
            with pytest.raises(llmb.TargetError, match="cluster"):
                llmb.start(llmb.load(remote.spec()), report_activity=report)
            assert not remote.toy.records
            return
        with llmb.start(llmb.load(remote.spec()), report_activity=report) as session:
            list(session)
            check_completed(session.results[0].as_dict(), remote)
    assert "connecting to cluster again, because the connection was lost" in activities


@pytest.mark.parametrize("lost", ["the directory", "the key"])
def test_a_run_fails_if_the_target_is_lost_before_the_submission(
    remote: Remote, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in remote.env.items():
        monkeypatch.setenv(name, value)
    remote.toy.gate.touch()
    keys = remote.server.folder / "authorized_keys"
    accepted = keys.read_text()
    with llmb.start(llmb.load(remote.spec())) as session:
        if lost == "the key":
            keys.write_text("")
            remote.server.drop()
        else:
            shutil.rmtree(remote.workdir)
            remote.workdir.write_text("in the way of a directory")
        with pytest.raises(llmb.TargetError, match="Not a directory" if lost == "the directory" else "key"):
            session.wait()
        [run] = session.results
    assert run.state == "failed"
    assert ("Not a directory" if lost == "the directory" else "key") in run.reason
    keys.write_text(accepted)
    remote.workdir.unlink(missing_ok=True) if lost == "the directory" else None
    assert remote.runs("attach") == []
    assert remote.toy.journal() == []


@pytest.mark.slow
def test_an_unreachable_host_does_not_delay_runs_on_other_hosts(remote: Remote) -> None:
    assert remote.llmb("run", remote.spec(), "--detach").returncode == 0
    assert remote.llmb("run", remote.toy.spec("here"), "--detach").returncode == 0
    remote.server.stop()
    attached = remote.llmb("attach")
    assert attached.returncode == 4
    assert "connection refused" in attached.stderr
    states = {run["state"] for run in remote.runs("runs")}
    assert "completed" in states
    remote.server.start()
    remote.toy.gate.touch()
    for run in remote.runs("attach"):
        check_completed(run, remote)
