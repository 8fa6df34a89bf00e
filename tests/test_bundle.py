"""Bundles: packed from recorded runs, signed, and verified from their own files alone."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parts.command_line import Llmb, command_line
from parts.finished_run import FinishedRun
from parts.forked import run_llmb, run_llmb_into

import llmb as library

pytestmark = pytest.mark.xdist_group("report")  # matplotlib takes more than a second to import
Files = dict[str, bytes]
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def run_id(finished: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> str:
    return finished.restore(monkeypatch)


def unpack(file: Path) -> Files:
    with tarfile.open(file) as tar:
        return {entry.name: content.read() for entry in tar if (content := tar.extractfile(entry))}


def pack(file: Path, files: Files) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return file


def with_new_manifest(files: Files) -> Files:
    """Return the files with a manifest that agrees with them, as a forger would write it."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"] = {
        name: hashlib.sha256(data).hexdigest() for name, data in files.items() if not name.startswith("manifest.json")
    }
    return files | {"manifest.json": json.dumps(manifest).encode()}


def test_a_bundle_has_records_reports_and_a_manifest_and_verifies(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    assert llmb("bundle", run_id, "-o", file).status == 0
    files = unpack(file)
    record = {f"runs/{run_id}/{name}" for name in ("run.toml", "job.sh", "events.jsonl", "result.json", "steps.csv")}
    assert files.keys() >= record | {"manifest.json", "environment.json", "report.csv", "report.xml", "report.html"}
    assert [name for name in files if "/logs/" in name]
    assert not [name for name in files if name.endswith("/lock")]
    answer = llmb("bundle", "--verify", file)
    assert (answer.status, answer.err) == (0, "")
    assert "files and metrics match" in answer.out
    assert "not signed" in answer.out
    assert library.bundle(run_id) == library.bundle(run_id)


def test_the_secrets_of_the_receiver_do_not_matter(
    llmb: Llmb, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz")
    monkeypatch.setenv("HF_TOKEN", run_id)
    assert llmb("bundle", "--verify", tmp_path / "b.tar.gz").status == 0


def test_a_bundle_may_go_to_standard_output(run_id: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run_llmb_into([str(out), str(tmp_path / "err")], ["bundle", run_id, "-o", "-"], cwd=tmp_path) == 0
    assert out.read_bytes() == library.bundle(run_id)
    assert not (tmp_path / "-").exists()


def test_a_bundle_is_never_written_to_a_terminal(llmb: Llmb, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    answer = llmb("bundle", run_id, "-o", "-")
    assert (answer.status, answer.out) == (2, "")
    assert "name a file, or redirect the output" in answer.err


def change_step_time(files: Files) -> Files:
    name = next(each for each in files if each.endswith("result.json"))
    result = json.loads(files[name])
    result["metrics"]["step_time_s"] *= 0.9
    return with_new_manifest(files | {name: json.dumps(result).encode()})


def change_peak(files: Files) -> Files:
    """Halve the peak, so that the MFU is twice as high."""
    name = next(each for each in files if each.endswith("result.json"))
    result = json.loads(files[name])
    for key, factor in (("peak_flops", 0.5), ("mfu", 2), ("mfu_computed", 2)):
        result["metrics"][key] *= factor
    return with_new_manifest(files | {name: json.dumps(result).encode()})


def change_steps(files: Files) -> Files:
    name = next(each for each in files if each.endswith("steps.csv"))
    return with_new_manifest(files | {name: files[name].rsplit(b"\n", 2)[0] + b"\n"})


def change_report(files: Files) -> Files:
    return with_new_manifest(files | {"report.csv": files["report.csv"].replace(b"completed", b"forged")})


def change_log(files: Files) -> Files:
    name = next(each for each in files if "/logs/" in each)
    return files | {name: files[name] + b"\n"}


def damage(name: str, data: bytes | None) -> Callable[[Files], Files]:
    """Return a function that replaces or removes a file of the record."""

    def forge(files: Files) -> Files:
        file = next(each for each in files if each.endswith(name))
        kept = {each: content for each, content in files.items() if each != file}
        return with_new_manifest(kept if data is None else kept | {file: data})

    return forge


FORGERIES: list[tuple[Callable[[Files], Files], str]] = [
    (change_step_time, "metrics.step_time_s is "),
    (change_peak, "metrics.mfu is "),
    (change_steps, "steps.csv differs from the logs"),
    (change_report, "report.csv differs from the records"),
    (damage("steps.csv", None), "/steps.csv is missing"),
    (damage("steps.csv", b"\xff"), "steps.csv differs from the logs"),
    (damage("run.toml", None), "/run.toml is missing"),
    (damage("run.toml", b"x ="), "/run.toml is damaged"),
    (damage("result.json", b'{"metrics": "none"}'), "metrics.step_time_s is None"),
    (change_log, "was changed: its SHA-256 is not that of the manifest"),
    (lambda files: files | {"more.txt": b""}, "more.txt is not in the manifest"),
    (lambda files: {name: files[name] for name in files if name != "report.csv"}, "report.csv is missing"),
]


def test_a_mismatch_exits_with_1_and_is_named(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz")
    for forge, mismatch in FORGERIES:
        answer = llmb("bundle", "--verify", pack(tmp_path / "forged.tar.gz", forge(unpack(tmp_path / "b.tar.gz"))))
        assert answer.status == 1, mismatch
        assert mismatch in answer.out


@pytest.mark.parametrize(("kind", "key"), [("framework", 'recipe = "'), ("scheduler", 'scheduler = "')])
def test_a_missing_plugin_is_an_error_and_no_mismatch(
    llmb: Llmb, run_id: str, tmp_path: Path, kind: str, key: str
) -> None:
    llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz")
    files = unpack(tmp_path / "b.tar.gz")
    name = f"runs/{run_id}/run.toml"
    files[name] = files[name].replace(f"\n{key}".encode(), f"\n{key}missing_".encode(), 1)
    answer = llmb("bundle", "--verify", pack(tmp_path / "other.tar.gz", with_new_manifest(files)))
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"llmb: {kind} plugin 'missing_")
    assert "' is not installed" in answer.err


def test_the_records_beside_a_damaged_one_are_compared_too(llmb: Llmb, toy: Any, tmp_path: Path) -> None:
    workload = {"recipe": "toy/judged", "dtype": "fp8", "repeats": 2}
    ids = sorted(each.run_id for each in library.run(library.load(toy.spec(workload=workload))))
    llmb("bundle", *ids, "-o", tmp_path / "b.tar.gz")
    files = unpack(tmp_path / "b.tar.gz")
    for damaged, changed in (ids, ids[::-1]):
        steps = f"runs/{changed}/steps.csv"
        forged = with_new_manifest(files | {f"runs/{damaged}/run.toml": b"x =", steps: files[steps] + b"9,9\n"})
        found = library.verify_bundle(pack(tmp_path / "forged.tar.gz", forged)).mismatches
        assert f"runs/{damaged}/run.toml is damaged" in "\n".join(found)
        assert f"{changed}: steps.csv differs from the logs" in "\n".join(found)


def test_a_pass_without_an_interval_is_a_mismatch(llmb: Llmb, toy: Any, tmp_path: Path) -> None:
    workload = {"recipe": "toy/judged", "dtype": "fp8"}
    [failed] = library.run(library.load(toy.spec(workload=workload, framework={"journal": "/dev/null"})))
    assert failed.verdict == "fail"
    llmb("bundle", failed.run_id, "-o", tmp_path / "b.tar.gz")
    files = unpack(tmp_path / "b.tar.gz")
    name = f"runs/{failed.run_id}/result.json"
    result = json.loads(files[name]) | {"verdict": "pass", "interval": None}
    forged = with_new_manifest(files | {name: json.dumps(result).encode()})
    answer = llmb("bundle", "--verify", pack(tmp_path / "forged.tar.gz", forged))
    assert answer.status == 1
    assert "verdict is pass, but the logs give fail" in " ".join(answer.out.split())


def test_a_verification_fits_a_terminal(
    llmb: Llmb, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz")
    forged = pack(tmp_path / "forged.tar.gz", change_log(unpack(tmp_path / "b.tar.gz")))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = re.sub(r"\x1b\[\d*m", "", llmb("bundle", "--verify", forged).out)
    assert "was changed: its SHA-256 is not" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.real
def test_a_signature_is_that_of_an_allowed_signer(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    for name in ("mine", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
        (tmp_path / f"{name}.signers").write_text(f"{name}@example.com {(tmp_path / f'{name}.pub').read_text()}")
    file, signers = tmp_path / "b.tar.gz", tmp_path / "mine.signers"
    assert llmb("bundle", run_id, "-o", file, "--sign", tmp_path / "mine").status == 0
    answer = llmb("bundle", "--verify", file, "--allowed-signers", signers)
    assert (answer.status, "by mine@example.com" in answer.out) == (0, True)
    answer = llmb("bundle", "--verify", file, "--allowed-signers", tmp_path / "other.signers")
    assert (answer.status, "not of a signer in" in answer.out) == (1, True)
    assert "signature  not valid\n" in answer.out
    forged = pack(tmp_path / "forged.tar.gz", with_new_manifest(unpack(file)))
    answer = llmb("bundle", "--verify", forged, "--allowed-signers", signers)
    assert (answer.status, "the signature does not match the manifest" in answer.out) == (1, True)
    llmb("bundle", run_id, "-o", file)
    answer = llmb("bundle", "--verify", file, "--allowed-signers", signers)
    assert (answer.status, "the bundle is not signed" in answer.out) == (1, True)
    answer = llmb("bundle", "--verify", file, "--allowed-signers", tmp_path / "no.signers")
    assert (answer.status, "no.signers cannot be read: No such file or directory" in answer.err) == (2, True)
    answer = llmb("bundle", "--verify", file, "--allowed-signers", tmp_path / "mine.pub")
    assert (answer.status, "mine.pub: a public key without its signer; expected lines" in answer.err) == (2, True)
    answer = llmb("bundle", run_id, "-o", file, "--sign", tmp_path / "no-key")
    assert (answer.status, "cannot sign with" in answer.err) == (2, True)


def test_a_key_that_may_not_sign_bundles_or_has_expired_is_named_as_such(
    llmb: Llmb, run_id: str, tmp_path: Path
) -> None:
    key, file, signers = tmp_path / "key", tmp_path / "b.tar.gz", tmp_path / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = (tmp_path / "key.pub").read_text()
    llmb("bundle", run_id, "-o", file, "--sign", key)
    signers.write_text(f'me@git namespaces="git" {public}')
    answer = llmb("bundle", "--verify", file, "--allowed-signers", signers)
    assert (answer.status, 'key is not permitted for use in signature namespace "llmb' in answer.out) == (1, True)
    signers.write_text(f'me@git valid-before="20200101" {public}')
    answer = llmb("bundle", "--verify", file, "--allowed-signers", signers)
    assert (answer.status, "signers:1: key has expired" in answer.out) == (1, True)


def test_redact_replaces_names_and_secrets_and_still_verifies(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    directory = Path(library.find_run(run_id).directory)
    log = next((directory / "logs").iterdir())
    lines = [
        f"on {socket.gethostname()} as alice in /home/alice/x with {TOKEN}",
        "gpu-a17:812:813 [0] NCCL INFO Bootstrap: Using eth0:10.20.30.41<0>",
        "Net : Connection closed by remote peer gpu-d8.cluster<43236>",
        "srun: error: gpu-b3: task 3: Exited with exit code 1",
        "slurmstepd-gpu-c5: error: Detected 1 oom-kill event(s) in StepId=6.1.",
        "in /lustre/home/carla/y and site-packages/home/utils",
        "[fd00:12::7]:29500 at 12:30:59 in c10::Error from ::1",
        "MASTER_ADDR=10.20.30.41 mail bob@site.example, nvidia-curand-cu12==10.3.9.90, 127.0.0.1",
    ]
    log.write_text("\n".join([*lines, log.read_text()]))
    spec = (directory / "run.toml").read_text()
    (directory / "run.toml").write_text(re.sub("^host = .*", 'host = ["n001", "n002"]', spec, flags=re.MULTILINE))
    result = json.loads((directory / "result.json").read_text())
    result["attempts"] = [{"attempt": 0, "followed_by": "job 7 of erin (urgent) on n001"}]
    (directory / "result.json").write_text(json.dumps(result))
    (directory / "job.sh").write_text("echo n001 n0012 /home/alice\n")
    file = tmp_path / "b.tar.gz"
    assert llmb("bundle", run_id, "-o", file, "--redact").status == 0
    every = b"\n".join(unpack(file).values())
    names = (
        f" {socket.gethostname()} ",
        "n001 ",
        "/home/alice",
        TOKEN,
        "gpu-a17",
        "gpu-b3",
        "gpu-c5",
        "gpu-d8",
        "10.20.30.41",
        "fd00:12::7",
        "carla",
        "erin",
        "bob@site",
    )
    for name in names:
        assert re.findall(rb".*(?<![a-z])%s.*" % re.escape(name.encode()), every) == []
    assert b"n0012" in every
    assert b"nvidia-curand-cu12==10.3.9.90, 127.0.0.1" in every
    assert b"eth0:ip-1<0>" in every
    assert b"site-packages/home/utils" in every
    assert b"[ip-2]:29500 at 12:30:59 in c10::Error from ::1" in every
    assert llmb("bundle", "--verify", file).status == 0


def test_a_bundle_that_tar_packs_again_is_still_valid(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    file, again, folder = tmp_path / "b.tar.gz", tmp_path / "again.tar.gz", tmp_path / "unpacked"
    assert llmb("bundle", run_id, "-o", file).status == 0
    folder.mkdir()
    subprocess.run(["tar", "xzf", file, "-C", folder], check=True)
    subprocess.run(["tar", "czf", again, "-C", folder, "."], check=True)
    assert llmb("bundle", "--verify", again).status == 0


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "runs/../../x"])
def test_an_archive_that_is_no_bundle_is_rejected(llmb: Llmb, tmp_path: Path, name: str) -> None:
    answer = llmb("bundle", "--verify", pack(tmp_path / "b.tar.gz", {"manifest.json": b"{}", name: b""}))
    assert (answer.status, answer.out) == (2, "")
    assert f"unexpected entry {name!r}" in answer.err
    (tmp_path / "text").write_text("no archive")
    assert llmb("bundle", "--verify", tmp_path / "text").status == 2
    assert "no valid manifest.json" in llmb("bundle", "--verify", pack(tmp_path / "b.tar.gz", {"x": b""})).err


@pytest.mark.parametrize(
    ("name", "problem"),
    [("report.csv/x", "File exists"), ("x" * 300, "File name too long")],
    ids=["below-a-file", "long"],
)
def test_a_file_that_cannot_be_unpacked_is_named(
    llmb: Llmb, run_id: str, tmp_path: Path, name: str, problem: str
) -> None:
    file = tmp_path / "b.tar.gz"
    assert llmb("bundle", run_id, "-o", file).status == 0
    answer = llmb("bundle", "--verify", pack(file, with_new_manifest({**unpack(file), name: b""})))
    assert answer.status == 2
    assert answer.err.startswith(f"llmb: cannot write {name!r} of the bundle to ")
    assert answer.err.endswith(f": {problem}\n")


def test_a_run_with_steps_whose_logs_were_deleted_is_not_bundled(llmb: Llmb, run_id: str, tmp_path: Path) -> None:
    logs = Path(library.find_run(run_id).directory, "logs")
    shutil.rmtree(logs)
    answer = llmb("bundle", run_id, "-o", tmp_path / "b.tar.gz")
    problem = f"{logs} has no logs, from which the receiver could compute the metrics again"
    assert (answer.status, answer.err) == (2, f"llmb: {problem}\n")


@pytest.mark.parametrize("mode", [0, 0o444], ids=["not readable", "not searchable"])
def test_no_bundle_lacks_the_logs_of_a_folder_without_rights(run_id: str, tmp_path: Path, mode: int) -> None:
    logs = Path(library.find_run(run_id).directory, "logs")
    usual = logs.stat().st_mode
    logs.chmod(mode)
    done = run_llmb(["bundle", run_id, "-o", f"{tmp_path}/b.tar.gz"], without_rights=os.geteuid() == 0)
    logs.chmod(usual)
    assert (done.returncode, (tmp_path / "b.tar.gz").exists()) == (2, False)
    assert done.stderr.startswith(f"llmb: {logs}")
    assert done.stderr.endswith(" cannot be read: Permission denied\n")


def test_a_damaged_or_a_too_large_archive_is_one_line(llmb: Llmb, tmp_path: Path) -> None:
    file = pack(tmp_path / "b.tar.gz", {"log": random.Random(1).randbytes(1 << 20)})
    file.write_bytes(file.read_bytes()[: 1 << 19] + b"\xff" * (1 << 18))  # no block of compressed data begins like this
    answer = llmb("bundle", "--verify", file)
    assert (answer.status, "b.tar.gz cannot be read: Error -3 while decompressing" in answer.err) == (2, True)
    entry = tarfile.TarInfo("log")
    entry.size = 5 << 30
    file.write_bytes(gzip.compress(entry.tobuf()))
    answer = llmb("bundle", "--verify", file)
    assert (answer.status, "b.tar.gz is too large to verify" in answer.err) == (2, True)


def test_a_run_that_has_not_ended_is_not_bundled(llmb: Llmb, toy: Any, tmp_path: Path) -> None:
    first, second = toy.record("one"), toy.record("two")
    answer = llmb("bundle", first, "-o", tmp_path / "b.tar.gz")
    line = f"{first} has not ended; first follow to the end with `llmb attach {first}`"
    assert (answer.status, " ".join(answer.err.split())) == (2, f"llmb: {line}")
    answer = llmb("bundle", first, second, "-o", tmp_path / "b.tar.gz")
    line = f"{first}, {second} have not ended; first follow to the end with `llmb attach {first} {second}`"
    assert (answer.status, " ".join(answer.err.split())) == (2, f"llmb: {line}")
    assert not (tmp_path / "b.tar.gz").exists()
