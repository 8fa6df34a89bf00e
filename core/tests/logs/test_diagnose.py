"""Causes of failed runs: made logs for the rules, real logs for the signatures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmb.logs import read_blocks
from llmb.logs.failures import choose_cause as module
from llmb.logs.failures import signature_search
from llmb.logs.failures.choose_cause import diagnose, last_exception
from llmb.logs.failures.commands_in_remedies import SEE_TRACEBACK
from llmb.logs.failures.signature_files import known_signatures
from llmb.values.failure import Signature

REAL = Path(__file__).parents[4] / "shared" / "logs"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.16 GiB."
WATCHDOG = "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)"
VICTIM = """\
E1121 05:01:02.075402  157988 coordination_service_agent.cc:332] Polled an error from coordination service (...)
F1121 05:01:02.075587  157988 client.h:77] Terminating process because the JAX distributed service detected fatal \
errors. This most likely indicates that another task died; see the other task logs for more details.
"""

FALLEN = Signature(needle="the sky fell", cause="the sky", remedy="hold it up")
SHAKEN = Signature(needle="it shook", cause="a shock", remedy="look elsewhere", primary=False)


def write(folder: Path, **logs: str) -> list[Path]:
    paths = []
    for name, text in logs.items():
        paths.append(folder / f"{name}.log")
        paths[-1].write_bytes(text.encode())
    return paths


def cause_of(folder: Path, **logs: str) -> str | None:
    found = diagnose(write(folder, **logs), [FALLEN, SHAKEN])
    return found.cause if found else None


@pytest.mark.parametrize("label", ["", "3: "])
def test_the_evidence_is_the_exception_and_not_the_code_that_raised_it(tmp_path: Path, label: str) -> None:
    code = ('  File "a.py", line 3, in <module>', '    raise SkyError("the sky fell")')
    lines = [
        f"{label}{line}" for line in ("Traceback (most recent call last):", *code, *code, "SkyError: the sky fell")
    ]
    lines.insert(-1, "5: the sky fell")  # rank 5 writes into the traceback
    found = diagnose(write(tmp_path, log="\n".join(lines)), [FALLEN])
    assert found
    assert (found.evidence, found.line) == (f"{label}SkyError: the sky fell", 7)
    found = diagnose(write(tmp_path, log="\n".join(code)), [FALLEN])  # the exception is lost
    assert found
    assert found.evidence == 'raise SkyError("the sky fell")'


@pytest.mark.parametrize("label", ["", "[rank3]: "])
def test_the_evidence_has_a_message_that_begins_below_its_exception(tmp_path: Path, label: str) -> None:
    """Python's multiprocessing prints such a message."""
    lines = ("Traceback (most recent call last):", '  File "a.py", line 3, in <module>', "RuntimeError: ", "  ")
    text = "".join(f"{label}{line}\n" for line in (*lines, "  forked"))
    found = last_exception(write(tmp_path, log=text.replace(f"{label}  forked", f"7: of another\n{label}  forked")))
    assert found
    assert (found.evidence, found.line) == (f"{label}RuntimeError: forked", 3)


@pytest.mark.parametrize("parts", [["KeyError", ": ", "'sky'"], ["KeyError", ": 'sky'"]])
def test_the_evidence_is_joined_if_each_part_of_its_line_has_a_label(tmp_path: Path, parts: list[str]) -> None:
    lines = ("Traceback (most recent call last):", '  File "a.py", line 3, in <module>', *parts, "")
    found = last_exception(write(tmp_path, log="".join(f"0: {line}\n" for line in lines)))
    assert found
    assert (found.cause, found.evidence, found.line) == ("a process failed with KeyError", "0: KeyError: 'sky'", 3)


def test_the_evidence_ends_before_the_traceback_of_another_process(tmp_path: Path) -> None:
    frame = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n'
    found = last_exception(write(tmp_path, log=f"{frame}ValueError: bad config:\n{frame}ValueError: other\n"))
    assert found
    assert found.evidence == "ValueError: bad config:"


def test_a_signature_gives_cause_line_and_remedy(tmp_path: Path) -> None:
    found = diagnose(write(tmp_path, run=f"one\ntwo\r\n3: {OOM}\nfour\n"))

    assert found is not None
    assert (found.cause, found.evidence, found.line) == ("the accelerator is out of memory", f"3: {OOM}", 3)
    assert "smaller micro batch" in found.remedy


@pytest.mark.parametrize("text", ["", "\n\n", "all is well\n", "\0\1\2" * 1000])
def test_a_log_without_a_signature_has_no_cause(tmp_path: Path, text: str) -> None:
    assert diagnose([*write(tmp_path, run=text), tmp_path / "missing.log", tmp_path]) is None


def test_the_earliest_cause_counts(tmp_path: Path) -> None:
    assert cause_of(tmp_path, run=f"the sky fell\n{OOM}\n") == "the sky"
    assert cause_of(tmp_path, run=f"{OOM}\nthe sky fell\n") == "the accelerator is out of memory"


def test_a_primary_signature_counts_more_than_a_secondary_one(tmp_path: Path) -> None:
    assert cause_of(tmp_path, run="it shook\nthe sky fell\n") == "the sky"
    assert cause_of(tmp_path, first="it shook\n", second="x" * 10_000 + "the sky fell\n") == "the sky"
    assert cause_of(tmp_path, run=f"it shook\n{WATCHDOG}\n") == "a shock"


def test_the_longer_of_two_texts_at_one_place_counts(tmp_path: Path) -> None:
    exact = Signature(needle="the sky fell twice", cause="two skies", remedy="")
    found = diagnose(write(tmp_path, run="the sky fell twice\n"), [FALLEN, exact])

    assert found is not None
    assert found.cause == "two skies"


@pytest.mark.parametrize("block", [1, 2, 3, 5, 11, 12, 13, 64])
def test_a_text_across_two_blocks_is_found_on_its_line(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_blocks, "BLOCK_BYTES", block)
    found = diagnose(write(tmp_path, run="one\ntwo\nthree: the sky fell\nfour\n"), [FALLEN])

    assert found is not None
    assert (found.evidence, found.line) == ("three: the sky fell", 3)


def test_a_text_that_begins_with_the_end_of_a_line_is_on_the_next(tmp_path: Path) -> None:
    found = diagnose(write(tmp_path, run="one\ntwo\nMemoryError\nfour\n"))

    assert found is not None
    assert (found.cause, found.evidence, found.line) == ("the host is out of memory", "MemoryError", 3)


@pytest.mark.parametrize("before", ["x" * 100_000, "bar |####| 3/9\r" * 1000], ids=["long line", "bar drawn anew"])
def test_evidence_of_a_long_line_is_the_part_around_the_signature(tmp_path: Path, before: str) -> None:
    found = diagnose(write(tmp_path, run=f"one\n{before}the sky fell{' on us' * 1000}\n"), [FALLEN])

    assert found is not None
    assert found.evidence.startswith("the sky fell on us")
    assert (len(found.evidence) <= 400, found.line) == (True, 2)


def test_an_argument_with_a_wrong_value_is_the_cause(tmp_path: Path) -> None:
    usage = "0: usage: train.py [-h] [--delay DELAY]\n0:                [--tp {1,2}]\n"
    for error in (
        "argument --delay: invalid float value: 'x y'",
        "argument --tp: invalid choice: 3 (choose from 1, 2)",
        "argument -s/--steps: expected one argument",
    ):
        found = diagnose(write(tmp_path, run=f"{usage}0: train.py: error: {error}\n"))
        assert found
        assert (found.cause, found.line) == ("the program rejects the value of an argument", 3)
    assert diagnose(write(tmp_path, run="error: argument parsing took 3 s\n")) is None


# Processes that die because another one did


def test_a_process_that_was_killed_after_another_died_is_no_cause(tmp_path: Path) -> None:
    found = diagnose(write(tmp_path, rank0=VICTIM))

    assert found is not None
    assert (found.cause, found.line) == ("another process of the run died", 1)
    assert cause_of(tmp_path, rank0=VICTIM, rank1="\n" * 5000 + OOM) == "the accelerator is out of memory"


@pytest.mark.parametrize("order", [("rank0", "rank1"), ("rank1", "rank0")])
def test_an_exception_before_a_secondary_signature_is_the_cause(tmp_path: Path, order: tuple[str, ...]) -> None:
    logs = {"rank0": VICTIM, "rank1": "one\nTraceback (most recent call last):\nValueError: 7 is no mesh\n" + VICTIM}
    found = diagnose(write(tmp_path, **{name: logs[name] for name in order}))

    assert found is not None
    assert (found.cause, found.evidence) == ("a process failed with ValueError", "ValueError: 7 is no mesh")
    assert (found.line, found.remedy) == (3, SEE_TRACEBACK)


@pytest.mark.parametrize(
    "error",
    [
        "[rank1]: some.library.DistBackendError: a communicator was aborted",
        "RuntimeError: NCCL communicator was aborted on rank 1.",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "some.JaxRuntimeError: UNAVAILABLE: the connection attempt timed out",
        "KeyboardInterrupt",
    ],
)
def test_an_exception_about_a_lost_connection_is_evidence_and_no_cause(tmp_path: Path, error: str) -> None:
    found = diagnose(write(tmp_path, rank0=VICTIM, rank1=error + "\n"))
    assert found is not None
    assert (found.cause, found.evidence) == ("another process of the run died", error)

    assert cause_of(tmp_path, rank0=VICTIM, rank1=error + "\n", rank2="KeyError: 7\n") == (
        "a process failed with KeyError"
    )


def test_an_exception_about_a_variable_of_nccl_is_a_cause(tmp_path: Path) -> None:
    line = "AssertionError: set NCCL_DEBUG first\n"
    assert cause_of(tmp_path, rank0=VICTIM, rank1=line) == "a process failed with AssertionError"


def test_an_exception_that_is_a_secondary_signature_is_no_cause(tmp_path: Path) -> None:
    line = "RuntimeError: [transport/tcp/pair.cc:553] Connection closed by peer [::1]:42\n"
    assert cause_of(tmp_path, rank0=line) == "another process of the run died (::1)"
    assert cause_of(tmp_path, rank0=f"KeyError: 7\n{line}") == "a process failed with KeyError"


# The table itself


def test_signatures_have_sources_and_different_texts() -> None:
    signatures = known_signatures()

    assert all(each.source and each.remedy and each.cause for each in signatures)
    assert all(each.origin for each in signatures if each.primary and not each.meanings)
    assert len({each.needle for each in signatures}) == len(signatures)
    assert max(len(each.needle) for each in signatures) < signature_search.OVERLAP_BYTES


def test_no_text_with_a_pattern_contains_another_text() -> None:
    """A line that lacks the pattern of the longer text would not be searched for the shorter one."""
    signatures = known_signatures()
    hidden = [
        (longer.needle, other.needle)
        for longer in signatures
        for other in signatures
        if longer.pattern and longer.primary == other.primary and other.needle in longer.needle
        if longer.needle != other.needle
    ]
    assert not hidden


def test_signatures_name_no_framework_and_no_scheduler() -> None:
    rooms = sorted((Path(module.__file__).parent / "signatures").iterdir())
    text = "".join(file.read_text().lower() for file in rooms)

    assert rooms
    assert not re.findall(r"maxtext|nemo|megatron|slurm|srun|pyxis|enroot|docker", text)


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: apex is not installed: No module named 'apex'\n",
        "torch.OutOfMemoryErrors are caught\n",
        "NCCL WARN [Proxy Service 8] Failed to execute operation Close from rank 10, retcode 3\n",
    ],
)
def test_harmless_lines_are_no_failure(tmp_path: Path, text: str) -> None:
    assert diagnose(write(tmp_path, run=text)) is None


# Real logs


@pytest.mark.parametrize("framework", ["maxtext", "megatron", "nemo"])
def test_no_log_of_a_training_that_went_well_has_a_cause_of_failure(framework: str) -> None:
    logs = [log for log in REAL.glob(f"{framework}/*.log") if "terminated" not in log.name]
    found = {log.name: diagnose([log]) for log in logs}

    assert [name for name, failure in found.items() if failure] == []


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.",
            "the driver reports a GPU error (79: the hardware fell off the bus)",
        ),
        ("kernel: NVRM: Xid (PCI:0000:00:06): 999, pid=1", "the driver reports a GPU error (999)"),
        ("NVRM: Xid (torn", "the driver reports a GPU error"),
        (
            "node1:42:99 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.7<43567> failed : x",
            "NCCL could not reach another process (10.0.0.7)",
        ),
        (
            "[W socket.cpp:601] The client socket has timed out after 60s while trying to connect to (node7, 29500).",
            "processes could not reach one another (node7, 29500)",
        ),
        ("RuntimeError: CUDA error: out of memory", "the accelerator is out of memory"),
        (
            "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried",
            "the host is out of memory",
        ),
        ("[ 123.4] Memory cgroup out of memory: Killed process 42 (python3)", "the host is out of memory"),
        (
            "n1:1:2 [3] ibvwrap.c:160 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory",
            "the processes may not lock enough memory for the network",
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "a GPU library failed"),
        (
            "AssertionError: Device compute capability 8.9 or higher required for FP8 execution.",
            "the GPU does not support this precision (FP8)",
        ),
    ],
)
def test_a_cause_has_the_number_or_the_node_of_its_line(tmp_path: Path, line: str, cause: str) -> None:
    assert cause_of(tmp_path, run=f"one\n{line}\n") == cause


REMOTE = """torch.distributed.DistBackendError: NCCL error in: /pytorch/NCCLUtils.hpp:268, remote process \
exited or there was a network error, NCCL version 2.27.5
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
Last error:
"""
SYSTEM = """DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1331, unhandled system error, NCCL version 2.18.6
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
Last error:
"""
INTERNAL = """DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1275, internal error, NCCL version 2.14.3
ncclInternalError: Internal check failed.
Last error:
"""
UNREACHED = "NCCL could not reach another process"
DIED = "another process of the run died"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            f"{REMOTE}socketPollConnect: connect to 10.67.10.124<36085> returned Connection refused, exceeded error "
            "retry count after 35 attempts",
            f"{UNREACHED} (10.67.10.124)",
        ),
        (
            "[2026-02-25 16:33:59] h6:42:42 [2] misc/socket.cc:578 NCCL WARN socketPollConnect: connect to "
            "10.82.101.249<54709> returned Connection refused, exceeded error retry count after 35 attempts\n"
            "RuntimeError: NCCL error: remote process exited or there was a network error",
            f"{UNREACHED} (10.82.101.249)",
        ),
        (
            "[0] misc/socket.cc:533 NCCL WARN socketPollConnect: Connect to 9001::281<50557> returned 113(No route to "
            f"host) errno 11(Resource temporarily unavailable)\n{REMOTE}",
            f"{UNREACHED} (9001::281)",
        ),
        (
            "tj1-13:941227:943077 [0] include/socket.h:390 NCCL WARN Connect to 10.38.10.112<21724> failed : refused",
            f"{UNREACHED} (10.38.10.112)",
        ),
        (
            f"{SYSTEM}socketStartConnect: Connect to fe80::966d:ae03:a2:8cf0%ib1<17943> failed : Software caused "
            "connection abort",
            f"{UNREACHED} (fe80::966d:ae03:a2:8cf0%ib1)",
        ),
        (
            f"{REMOTE}NET/IB : Got completion from peer 11.214.147.122<39138> with error 12, opcode 0, len 0",
            "the network between the nodes failed (11.214.147.122)",
        ),
        (
            f"{REMOTE}NET/OFI Request 0x7f14cc5b60c0 completed with error. RC: 113. Error: 2 (UNDELIVERABLE)",
            "the network between the nodes failed",
        ),
        (
            f"{REMOTE}socketProgressOpt: Call to recv from 172.16.0.9<33759> failed : Connection reset by peer",
            f"{DIED} (172.16.0.9)",
        ),
        (f"{INTERNAL}Net : Connection closed by remote peer node-1.pcluster<43236>", f"{DIED} (node-1.pcluster)"),
        (f"{REMOTE}Socket recv failed while polling for opId=0x7f6f18cb7f40", DIED),
        (REMOTE, DIED),
    ],
)
def test_the_peer_that_the_last_error_of_nccl_names_is_in_the_cause(tmp_path: Path, text: str, cause: str) -> None:
    labelled = "".join(f"[rank3]: {line}\n" for line in text.splitlines())
    assert cause_of(tmp_path, run=f"one\n{text}\n") == cause
    assert cause_of(tmp_path, run=f"one\n{labelled}") == cause
    assert cause_of(tmp_path, run=f"ValueError: no data\n{text}\n") == "a process failed with ValueError"


def test_a_name_that_several_ranks_wrote_at_the_same_time_is_one_exception(tmp_path: Path) -> None:
    log = write(tmp_path, run=f"step 1\n{'FileNotFoundError' * 3}: : : [Errno 2] No such file: '/d/x'\n")
    found = last_exception(log)

    assert found is not None
    assert (found.cause, found.origin) == ("a process failed with FileNotFoundError", "user")


FRAMES = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    main()\n'


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("struct.error: unpack requires a buffer of 8 bytes", "struct.error"),
        ("lmdb.error", "lmdb.error"),
        ("netCDF4.io_error: no file", "netCDF4.io_error"),
        ("socket.timeout: timed out", "socket.timeout"),
        ("grpc._channel._MultiThreadedRendezvous: <no text>", "_MultiThreadedRendezvous"),
        ("ray.exceptions.RayTaskError(ValueError): x", "ValueError"),
    ],
)
def test_an_exception_with_an_unusual_name_is_found(tmp_path: Path, error: str, name: str) -> None:
    found = last_exception(write(tmp_path, run=f"step 1\n{FRAMES}{error}\n"))
    assert found is not None
    assert (found.cause, found.evidence) == (f"a process failed with {name}", error)


def test_lines_of_several_ranks_between_one_another_do_not_hide_an_exception_with_a_small_letter(
    tmp_path: Path,
) -> None:
    text = "".join(line * 8 for line in f"{FRAMES}zlib.error: Error -3\n".splitlines(keepends=True))
    found = last_exception(write(tmp_path, run=text))
    assert found is not None
    assert found.cause == "a process failed with zlib.error"


def test_an_exception_between_the_carets_of_other_ranks_is_found(tmp_path: Path) -> None:
    """Python marks the code of a frame with carets, and several ranks without labels write at the same time."""
    frame = '  File "a.py", line 3, in <module>\n'
    log = f"Traceback (most recent call last):\n{frame}{frame}    main()main()\n  ^^^^^^ ^^\n"

    found = last_exception(write(tmp_path, log=f"{log}^^KeyError^^: ^'sky'^^\n"))

    assert found
    assert (found.cause, found.line) == ("a process failed with KeyError", 6)


@pytest.mark.parametrize("text", ["train.error: no data", "valid.error: 0.12", "cache.timeout: 30"])
def test_the_name_of_a_logger_is_no_exception(tmp_path: Path, text: str) -> None:
    assert last_exception(write(tmp_path, run=f"step 1\n{text}\n")) is None


def test_the_evidence_is_the_cause_below_an_exception_of_a_ray_task(tmp_path: Path) -> None:
    task = "ray.exceptions.RayTaskError(ValueError): ray::train() (pid=12, ip=10.0.0.1)"
    error = f'{FRAMES}{task}\n  File "w.py", line 3, in train\n    raise ValueError("no data")\nValueError: no data\n'
    found = last_exception(write(tmp_path, run=f"step 1\n{error}"))
    assert found is not None
    assert (found.cause, found.evidence) == ("a process failed with ValueError", "ValueError: no data")
    assert last_exception(write(tmp_path, run=f"Exception in thread Thread-3 (run):\n{error}")) is None


def test_a_connection_that_nccl_retries_is_no_failure(tmp_path: Path) -> None:
    line = "socketPollConnect: connect to 10.0.0.7<5> returned Connection refused, retrying (3/34) after sleep for"
    assert diagnose(write(tmp_path, run=f"n1:42:99 [0] NCCL INFO {line} 300 msec\nstep 1\n")) is None


MISSING = {
    "exec": ("/w/runs/a/command.sh: line 3: exec: torchrun: not found\n", "a program was not found (torchrun)"),
    "bash": ("c.sh: line 1: torchrun: command not found\n", "a program was not found (torchrun)"),
    "sh": ("/bin/sh: 1: torchrun: not found\n", "a program was not found (torchrun)"),
    "path": (
        "/w/command.sh: line 3: /x/train: No such file or directory\n",
        "a program or file does not exist in the image or on the node (/x/train)",
    ),
    "variable": ("/w/train.sh: line 23: DATA: unbound variable\n", "a script needs a variable that is not set (DATA)"),
    "python": (
        "python: can't open file '/x/train.py': [Errno 2] No such file or directory\n",
        "the program does not exist in the image or on the node",
    ),
}


EXITED = "".join(f"error: node{node}: tasks 0-7: Exited with exit code 127\n" for node in range(30))


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_program_is_the_cause(tmp_path: Path, name: str) -> None:
    line, cause = MISSING[name]
    found = diagnose(write(tmp_path, run=f"starting\n{line}"))
    assert found is not None
    assert (found.cause, found.evidence, found.line, found.origin) == (cause, line.strip(), 2, "user")
    assert cause_of(tmp_path, run="".join(f"{rank}: {line}" for rank in range(100)) + EXITED) == cause


@pytest.mark.parametrize("name", ["exec", "bash", "sh", "path", "variable"])
def test_a_missing_program_is_no_cause_if_the_script_went_on(tmp_path: Path, name: str) -> None:
    line, _ = MISSING[name]
    assert diagnose(write(tmp_path, run=line + "step 1\n" * 5)) is None
    assert diagnose(write(tmp_path, run=line * 100 + "step 1\n" * 5)) is None
    assert cause_of(tmp_path, run=f"{line}KeyError: 7\nbye\n{VICTIM}") == "a process failed with KeyError"


LAUNCHERS = {
    "elastic": ("torch.x.errors.ChildFailedError:\n====\ntrain.py FAILED\n", "unknown: a process of the run failed"),
    "mpi": (
        "mpirun noticed that process rank 3 with PID 0 on node n7 exited on signal 9 (Killed).\n",
        "unknown: a process ended with signal 9",
    ),
    "launch": (
        "subprocess.CalledProcessError: Command '['python3', '-u', 'a.py']' died with <Signals.SIGKILL: 9>.\n",
        "unknown: a process ended with SIGKILL (killed, often because the host is out of memory)",
    ),
    "mpi exit": ("Primary job  terminated normally, but 1 process returned\n", "unknown: a process of the run failed"),
}


@pytest.mark.parametrize("name", LAUNCHERS)
def test_the_report_of_a_launcher_is_a_cause_only_without_the_exception_of_a_rank(tmp_path: Path, name: str) -> None:
    report, cause = LAUNCHERS[name]
    between = "".join(f"rank 0 waits {second} s\n" for second in range(150))

    assert cause_of(tmp_path, run=f"{between}{report}") == cause
    assert cause_of(tmp_path, run=f"ValueError: no data\n{between}{report}") == "a process failed with ValueError"
    assert cause_of(tmp_path, run=f"{report}{OOM}\n") == "the accelerator is out of memory"
