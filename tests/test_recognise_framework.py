"""The framework that wrote a log: ``llmb parse`` finds it if the user names none, or another one."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

NEMO_STEP = b"Training epoch 0, iteration 0/19 | lr: 1e-06 | global_step: 0\n"


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.mark.parametrize("named", [("--framework", "maxtext"), ("--recipe", "maxtext/llama2-70b")])
def test_the_framework_that_wrote_a_log_is_named(llmb: Llmb, tmp_path: Path, named: tuple[str, str]) -> None:
    log = tmp_path / "bad.log"
    log.write_bytes(NEMO_STEP)
    answer = llmb("parse", log, *named)
    assert (answer.status, answer.out) == (1, "")
    advice = "this is a log of nemo_launcher: use --framework nemo_launcher, or a recipe of nemo_launcher"
    assert answer.err == f"llmb: {log}: no maxtext steps found; {advice}\n"


def test_the_framework_that_wrote_a_folder_is_found_in_eight_of_its_logs(llmb: Llmb, tmp_path: Path) -> None:
    for name in "abcdefgh":
        (tmp_path / f"{name}.log").write_text("nothing\n")
    (tmp_path / "i.log").write_bytes(NEMO_STEP)
    unknown = f"llmb: {tmp_path}: no file with maxtext steps found; check --framework"
    assert llmb("parse", tmp_path, "--framework", "maxtext").err.splitlines()[-1] == unknown
    (tmp_path / "h.log").write_bytes(NEMO_STEP)
    known = f"llmb: {tmp_path}: no maxtext steps found; these are logs of nemo_launcher: use --framework nemo_launcher"
    assert llmb("parse", tmp_path, "--framework", "maxtext").err.splitlines()[-1].startswith(known)


def test_a_directory_without_logs_is_an_error_about_the_directory(llmb: Llmb, tmp_path: Path) -> None:
    (tmp_path / "weights.log").write_bytes(bytes(range(256)))
    answer = llmb("parse", tmp_path)
    assert (answer.status, answer.err) == (2, f"llmb: {tmp_path}: no logs found; expected a directory with logs\n")


@pytest.mark.parametrize("name", ["log-77-{}.out", "attempt_0/{}/stdout.log"])
def test_the_framework_is_found_if_only_the_last_rank_prints_steps(llmb: Llmb, tmp_path: Path, name: str) -> None:
    for rank in range(20):
        log = tmp_path / name.format(rank)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(NEMO_STEP if rank == 19 else b"nothing\n")
        log.with_name("stderr.log").write_text("a warning\n")

    answer = llmb("parse", tmp_path, "--json").json

    assert [each["path"] for each in answer["logs"]] == [str(log)]


@pytest.mark.parametrize("compressed", [False, True])
def test_the_framework_that_wrote_a_folder_is_found_behind_many_binary_files(
    llmb: Llmb, tmp_path: Path, compressed: bool
) -> None:
    for name in "abcdefgh":
        (tmp_path / f"{name}.out").write_bytes(bytes(range(128, 256)) * 2000)
    log = tmp_path / ("i.log.gz" if compressed else "i.log")
    log.write_bytes(gzip.compress(NEMO_STEP) if compressed else NEMO_STEP)

    named = llmb("parse", tmp_path, "--framework", "maxtext")
    assert "these are logs of nemo_launcher" in named.err
    assert "passed over 8 files" in named.err
    assert [each["path"] for each in llmb("parse", tmp_path, "--json").json["logs"]] == [str(log)]


def test_without_a_framework_the_one_that_finds_steps_reads_the_log(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "any.log"
    log.write_bytes(NEMO_STEP)
    answer = llmb("parse", log, "--json")
    assert answer.json["framework"] == "nemo_launcher"
    assert answer.err == "llmb: reading logs of nemo_launcher; --framework NAME selects another framework\n"


def test_without_a_framework_the_logs_of_a_folder_are_tried(llmb: Llmb, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("nothing\n")
    (tmp_path / "b.log").write_bytes(NEMO_STEP)
    (tmp_path / "c.log").write_bytes(NEMO_STEP * 2)
    assert [log["path"] for log in llmb("parse", tmp_path, "--json").json["logs"]] == [
        str(tmp_path / name) for name in ("b.log", "c.log")
    ]


def test_a_log_with_steps_is_found_behind_many_logs_of_failures(llmb: Llmb, tmp_path: Path) -> None:
    failure = b"CUDA error: uncorrectable ECC error encountered\n"
    for name in "abcdefgh":
        (tmp_path / f"{name}.log").write_bytes(b"nothing\n" if name < "e" else failure)
    (tmp_path / "i.log").write_bytes(NEMO_STEP + failure)
    answer = llmb("parse", tmp_path)
    assert "llmb: reading logs of nemo_launcher; --framework NAME selects another framework" in answer.err.splitlines()
    assert (answer.status, "no maxtext steps found" in answer.err) == (0, False)


@pytest.mark.parametrize("named", [(), ("--framework", "maxtext")])
def test_the_training_log_is_found_behind_the_logs_of_many_ranks_and_nodes(
    llmb: Llmb, tmp_path: Path, named: tuple[str, ...]
) -> None:
    for rank in range(64):
        (tmp_path / f"nccl.{rank}.log").write_text("NCCL INFO Channel 00/02\n")
        (tmp_path / f"node{rank:03}").mkdir()
        (tmp_path / f"node{rank:03}" / "dmesg.out").write_text("nvidia: loading\n")
    (tmp_path / "train.log").write_bytes(NEMO_STEP)
    assert "logs of nemo_launcher" in llmb("parse", tmp_path, *named).err


@pytest.mark.parametrize(("count", "read"), [(8, ""), (9, "8 logs of ")])
def test_only_the_logs_that_were_read_are_said_to_have_no_steps(
    llmb: Llmb, tmp_path: Path, count: int, read: str
) -> None:
    for number in range(count):
        (tmp_path / f"{number}.log").write_text("hello\n")
    answer = llmb("parse", tmp_path)
    assert answer.status == 2
    installed = "maxtext, megatron_bridge, nemo_launcher"
    assert answer.err.startswith(
        f"llmb: no installed framework ({installed}) finds a step in {read}{tmp_path}; describe"
    )
    assert answer.err.endswith(f"`llmb new-plugin NAME --from {tmp_path}/0.log`\n")


def test_the_failure_of_a_run_without_steps_is_explained_whatever_its_framework(llmb: Llmb, tmp_path: Path) -> None:
    log, other = tmp_path / "a.log", tmp_path / "b.log"
    log.write_text("rank 3 starts\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.16 GiB.\n")
    other.write_text("hello\n")
    no_step = "no installed framework finds a step"
    answer = llmb("parse", log)
    assert answer.status == 1
    assert answer.out.startswith("cause   the accelerator is out of memory\nlog     torch.OutOfMemory")
    assert "(line 2)\n" in answer.out
    assert "\nremedy  use a smaller micro batch" in answer.out
    assert answer.err.startswith(f"llmb: {log}: {no_step}; the run may have failed before its first one")
    document = json.loads(llmb("parse", log, "--json").out)
    assert (document["status"], document["failure"]["line"]) == ("no_data", 2)
    answer = llmb("parse", other, log)
    assert answer.status == 1
    assert answer.err.count(no_step) == 2
    assert "the accelerator is out of memory" in llmb("parse", tmp_path).out


@pytest.mark.parametrize(
    ("message", "framework", "cause"),
    [
        (
            "AssertionError: OptimizerParamScheduler: class input value 1e-06 and checkpointvalue 1e-05 for minimum "
            "learning rate do not match",
            "megatron_bridge", "the checkpoint was written with another minimum learning rate",
        ),
        (
            "hydra.errors.MissingConfigException: Cannot find primary config 'gpt3'",
            "nemo_launcher", "a file of the configuration is missing",
        ),
        ("ValueError: bad shard", "maxtext", "a process failed with ValueError"),
    ],
)  # fmt: skip
def test_the_framework_that_explains_a_failure_without_steps_is_found(
    llmb: Llmb, tmp_path: Path, message: str, framework: str, cause: str
) -> None:
    log = tmp_path / "a.log"
    log.write_text(f'Traceback (most recent call last):\n  File "/opt/train.py", line 7, in <module>\n{message}\n')
    document = llmb("parse", log, "--json").json
    assert (document["framework"], document["failure"]["cause"]) == (framework, cause)


def test_each_log_without_steps_has_its_own_reason_beside_a_log_with_steps(llmb: Llmb, tmp_path: Path) -> None:
    log, empty, failed = (tmp_path / name for name in ("a.log", "b.log", "c.log"))
    log.write_bytes(NEMO_STEP)
    empty.touch()
    failed.write_text("torch.OutOfMemoryError: CUDA out of memory.\n")
    *_, first, second = llmb("parse", log, empty, failed).err.splitlines()
    assert first == f"llmb: {empty}: is empty"
    assert second.startswith(f"llmb: {failed}: no nemo_launcher steps found; failed before the first step")
    assert llmb("parse", failed, empty).err.splitlines()[-1] == first


@pytest.mark.parametrize("kind", ["no steps", "missing", "pipe", "nothing"])
def test_logs_that_no_framework_can_be_found_for(llmb: Llmb, tmp_path: Path, kind: str) -> None:
    log = tmp_path / "any.log"
    if kind == "no steps":
        log.write_text("hello\n")
    elif kind == "pipe":
        os.mkfifo(log)
    answer = llmb("parse", *([] if kind == "nothing" else [log]))
    assert (answer.status, answer.out) == (2, "")
    assert (
        answer.err
        == {
            "no steps": "llmb: no installed framework (maxtext, megatron_bridge, nemo_launcher) finds a step in "
            f"{log}; describe another one: `llmb new-plugin NAME --from {log}`\n",
            "missing": f"llmb: {log}: cannot be read: No such file or directory\n",
            "pipe": f"llmb: {log} can be read only once, because it is no file; "
            "name its framework (--framework NAME)\n",
            "nothing": "llmb: missing argument 'LOG', or option '--framework'; see `llmb parse --help`\n",
        }[kind]
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\x28\xb5\x2f\xfd\0", "is compressed by zstd; unpack it first"),
        (b"PK\3\4\0", "is compressed by zip; unpack it first"),
        (gzip.compress(b"hello")[:-9], "cannot be unpacked: Compressed file ended before"),
    ],
    ids=["empty", "zstd", "zip", "damaged"],
)
def test_a_log_that_no_framework_can_read_has_a_reason(llmb: Llmb, tmp_path: Path, content: bytes, reason: str) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(content)
    answer = llmb("parse", log)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"llmb: {log}: {reason}")


@pytest.mark.parametrize("name", ["logs.tar", "logs.tar.gz"])
def test_an_archive_is_not_read_as_one_log_of_several_runs(llmb: Llmb, tmp_path: Path, name: str) -> None:
    log, archive = tmp_path / "a.log", tmp_path / name
    log.write_bytes(NEMO_STEP)
    with tarfile.open(archive, "w:gz" if name.endswith("gz") else "w") as tar:
        tar.add(log, "rank0.log")
        tar.add(log, "rank1.log")
    published = ("--recipe", "nemo_launcher/llama3.1-8b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "8")
    message = f"llmb: {archive}: is a tar archive; unpack it first\n"
    for arguments in (["parse", archive], ["parse", archive, "--framework", "nemo_launcher"]):
        assert llmb(*arguments).err == message
    answer = llmb("grade", archive, *published)
    assert (answer.status, answer.err) == (2, message)
    archive.rename(archive.with_suffix(".log"))
    answer = llmb("parse", tmp_path, "--framework", "nemo_launcher")
    assert answer.out.count("1 of 20 steps") == 1  # of the log beside the archive
    assert "is a tar archive; unpack it first" in answer.err


@pytest.mark.parametrize("command", [("parse", "--framework", "maxtext"), ("parse",)])
def test_a_device_without_an_end_is_no_log(llmb: Llmb, command: tuple[str, ...]) -> None:
    answer = llmb(*command, "/dev/zero")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("llmb: /dev/zero")
