"""Redaction of hosts and users whose names are words that llmb reads, such as h100 and maxtext."""

from __future__ import annotations

import json
import re
import socket
import tarfile
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line
from parts.finished_run import FinishedRun

import llmb as library

pytestmark = pytest.mark.xdist_group("report")  # matplotlib takes more than a second to import


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("toy"), workload={"recipe": "toy/judged", "dtype": "fp8"})


@pytest.fixture
def run_id(finished: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> str:
    return finished.restore(monkeypatch)


def files_of(bundle: Path) -> dict[str, str]:
    with tarfile.open(bundle) as tar:
        return {entry.name: content.read().decode() for entry in tar if (content := tar.extractfile(entry))}


def rename_host(run_id: str, host: str) -> Path:
    """Write the record of a job that ran on this host. Return the log."""
    directory = Path(library.find_run(run_id).directory)
    spec = (directory / "run.toml").read_text()
    spec = re.sub("^host = .*", f'host = ["{host}"]', spec, flags=re.MULTILINE)
    (directory / "run.toml").write_text(spec.replace("[target]", f'[target]\nname = "{host}"'))
    result = json.loads((directory / "result.json").read_text())
    result["attempts"] = [{"attempt": 0, "nodes": [host], "cause": "completed"}]
    (directory / "result.json").write_text(json.dumps(result, indent=2))
    [log] = (directory / "logs").iterdir()
    return log


HOSTS = ["h100", "local", "train", "10"]
MORE_HOSTS = ["H100", "fp8", "toy", "judged", "step", "state", "completed", "seconds"]


@pytest.mark.parametrize("host", [*HOSTS, *(pytest.param(each, marks=pytest.mark.slow) for each in MORE_HOSTS)])
def test_a_host_may_have_the_name_of_a_word_that_llmb_reads(
    llmb: Llmb, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    log = rename_host(run_id, host)
    lines = [f"{host}:812:813 [0] NCCL INFO Bootstrap", f"MASTER_ADDR={host} as bob@{host}", f'hosts: ["{host}"]']
    log.write_text("\n".join([*lines, log.read_text()]))
    file = tmp_path / "b.tar.gz"
    assert llmb("bundle", run_id, "-o", file, "--redact").status == 0
    assert (llmb("bundle", "--verify", file).status, library.verify_bundle(file).mismatches) == (0, ())
    files = files_of(file)
    record = {name.rpartition("/")[2]: text for name, text in files.items()}
    assert not re.search(rf'(host|^name) = .*"{host}"', record["run.toml"], re.MULTILINE)
    assert not re.search(rf'"{host}"\s*\]', record["result.json"])
    assert f"@{host}" not in record[log.name]
    if not host.isdigit():
        assert not re.search(rf"^{host}:812|ADDR={host}", record[log.name], re.MULTILINE)
    assert json.loads(record["result.json"])["state"] == "completed"
    assert 'recipe = "toy/judged"' in record["run.toml"]


@pytest.mark.parametrize("user", ["h100", "toy", "step", "train"])
def test_a_user_may_have_the_name_of_a_word_that_llmb_reads(llmb: Llmb, run_id: str, tmp_path: Path, user: str) -> None:
    [log] = (Path(library.find_run(run_id).directory) / "logs").iterdir()
    log.write_text(f"Loading config /home/{user}/x.yml for {user}@login\n{log.read_text()}")
    file = tmp_path / "b.tar.gz"
    assert llmb("bundle", run_id, "-o", file, "--redact").status == 0
    assert llmb("bundle", "--verify", file).status == 0
    [text] = [text for name, text in files_of(file).items() if "/logs/" in name]
    assert re.match(r"Loading config /home/(user-\d+)/x.yml for \1@login\n", text)


def test_the_work_directory_of_such_a_user_is_replaced(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    directory = Path(library.find_run(run_id).directory)
    spec = (directory / "run.toml").read_text()
    spec = re.sub("^workdir = .*", 'workdir = "/scratch/toy/llmb"', spec, flags=re.MULTILINE)
    (directory / "run.toml").write_text(spec)
    [log] = (directory / "logs").iterdir()
    log.write_text(f"/home/toy/x\nin /scratch/toy/llmb/runs\nframework toy\n{log.read_text()}")
    assert llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz", "--redact").status == 0
    every = "\n".join(files_of(tmp_path / "b.tar.gz").values())
    assert "/scratch/toy" not in every
    assert "framework toy" in every


@pytest.mark.parametrize("host", ["h100", "h100:2222", "toy@h100:2222"])
def test_the_host_of_the_target_is_replaced(llmb: Llmb, run_id: str, tmp_path: Path, host: str) -> None:
    directory = Path(library.find_run(run_id).directory)
    spec = (directory / "run.toml").read_text()
    (directory / "run.toml").write_text(spec.replace("[target]", f'[target]\nhost = "{host}"'))
    file = tmp_path / "b.tar.gz"
    assert llmb("bundle", run_id, "-o", file, "--redact").status == 0
    text = files_of(file)[f"runs/{run_id}/run.toml"]
    assert re.search(r'\[target\]\nhost = "(user-\d@)?host-\d(:2222)?"', text)


def test_a_name_that_every_step_needs_is_refused(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    log = rename_host(run_id, "toy")
    log.write_text(log.read_text().replace("toy step", "user: toy step"))
    answer = llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz", "--redact")
    message = " ".join(answer.err.split())
    assert (answer.status, (tmp_path / "b.tar.gz").exists()) == (2, False)
    assert message.startswith("llmb: --redact cannot replace the name 'toy', which is also a word that llmb reads: ")
    assert message.endswith("; rename it in the files of the record, or write the bundle without --redact")


def test_a_run_of_an_unknown_gpu_type_is_a_mismatch_in_one_line(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    directory = Path(library.find_run(run_id).directory)
    spec = (directory / "run.toml").read_text()
    (directory / "run.toml").write_text(spec.replace('gpu_type = "h100"', 'gpu_type = "host-1"'))
    assert llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz").status == 0
    [mismatch] = library.verify_bundle(tmp_path / "b.tar.gz").mismatches
    assert mismatch.startswith(f"runs/{run_id}/run.toml: workload.gpu_type: unknown GPU type host-1")
    assert not re.search(r"\n|\[host-1\]", mismatch)
    assert llmb("bundle", "--verify", tmp_path / "b.tar.gz").status == 1
