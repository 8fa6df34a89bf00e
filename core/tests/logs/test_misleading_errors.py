"""Errors that are early or frequent in logs, and that another error or the scheduler explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import diagnose, last_exception
from llmb.values.failure import Signature

FRAMES = 'Traceback (most recent call last):\n  File "/opt/train.py", line 70, in <module>\n    main()\n'
CAUGHT = 'Traceback (most recent call last):\n  File "/opt/hub.py", line 9, in fetch\n    get(url)\n'
TORN = {
    "torch.load": "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    "torch.save": "RuntimeError: [enforce fail at inline_container.cc:659] . unexpected pos 704 vs 598",
    "pickle": "EOFError: Ran out of input",
    "safetensors": "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata",
    "h5py": "OSError: Unable to open file (truncated file: eof = 96, stored_eof = 2048)",
}
FULL = {
    "OSError: [Errno 28] No space left on device": "a disk is full",
    "OSError: [Errno 122] Disk quota exceeded": "the disk quota is used up",
}
TIME_LIMIT = Signature(needle="DUE TO TIME LIMIT", cause="the time limit", remedy="raise it", primary=False)
CANCELLED = "slurmstepd: error: *** STEP 47.0 ON n1 CANCELLED AT 2026-11-22T12:00:00 DUE TO TIME LIMIT ***\n"
GAI = "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
GAI_OF_TORCH = (
    "[W1122 10:00:00.1 socket.cpp:755] [c10d] The IPv6 network addresses of (n1, 29500) cannot be retrieved "
    "(gai error: -2 - Name or service not known).\n"
)


def cause_of(path: Path, text: str) -> str | None:
    path.write_text(text)
    found = diagnose([path], endings=[TIME_LIMIT])
    return found.cause if found else None


def labelled(rank: int, text: str) -> str:
    return "".join(f"{rank}: {line}\n" for line in text.splitlines())


@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("full", FULL)
def test_a_full_disk_explains_an_incomplete_file_of_another_rank(tmp_path: Path, torn: str, full: str) -> None:
    early, late = tmp_path / "rank0.log", tmp_path / "rank1.log"
    early.write_text(f"[2026-11-22 10:14:02] resuming\n{FRAMES}{TORN[torn]}\n")
    late.write_text(f"[2026-11-22 10:15:02] saving\n{FRAMES}{full}\n")
    found = diagnose([early, late])
    assert found
    assert (found.cause, found.origin, found.rank) == (FULL[full], "infrastructure", 1)

    log = tmp_path / "job.out"
    log.write_text(labelled(0, FRAMES + TORN[torn]) + labelled(1, FRAMES + full))
    found = diagnose([log])
    assert found
    assert (found.cause, found.rank) == (FULL[full], 1)


@pytest.mark.parametrize("torn", TORN)
def test_an_incomplete_file_is_the_cause_without_an_error_of_a_full_disk(tmp_path: Path, torn: str) -> None:
    alone = cause_of(tmp_path / "run.log", FRAMES + TORN[torn] + "\n")
    assert alone
    assert "checkpoint" in alone or "file" in alone
    warning = "WARNING: cache not written: No space left on device\n"
    assert cause_of(tmp_path / "run.log", warning + FRAMES + TORN[torn] + "\n") == alone


def test_a_full_disk_does_not_explain_other_errors(tmp_path: Path) -> None:
    text = labelled(0, "RuntimeError: CUDA out of memory. Tried to allocate") + labelled(1, next(iter(FULL)))
    assert cause_of(tmp_path / "run.log", text) == "the accelerator is out of memory"


@pytest.mark.parametrize("label", ["", "3: "])
@pytest.mark.parametrize("error", [GAI_OF_TORCH * 4, CAUGHT + GAI, f"retrying: {GAI}" * 4, f"WARNING: {GAI}"])
def test_a_name_that_a_program_can_do_without_is_not_the_cause_of_a_time_limit(
    tmp_path: Path, error: str, label: str
) -> None:
    text = "".join(f"{label}{line}\n" for line in (error + "loading a shard\n" * 9).splitlines())
    assert cause_of(tmp_path / "run.log", text + CANCELLED) == "the time limit"


def test_after_a_name_that_a_program_can_do_without_an_exception_is_the_cause(tmp_path: Path) -> None:
    text = CAUGHT + GAI + "loading a shard\n" * 9
    error = FRAMES + "ValueError: bad shard\n"
    assert cause_of(tmp_path / "run.log", text + error) == "a process failed with ValueError"
    oom = "RuntimeError: CUDA out of memory. Tried to allocate\n"
    assert cause_of(tmp_path / "run.log", text + FRAMES + oom) == "the accelerator is out of memory"


def test_an_error_between_two_names_that_a_program_can_do_without_is_the_cause(tmp_path: Path) -> None:
    survived = CAUGHT + GAI + "loading a shard\n" * 9
    oom = labelled(2, "RuntimeError: CUDA out of memory. Tried to allocate")
    assert cause_of(tmp_path / "run.log", survived + oom + survived + CANCELLED) == "the accelerator is out of memory"
    ended = labelled(1, FRAMES + GAI)
    ranks = [labelled(rank, survived) for rank in (0, 2)]
    assert cause_of(tmp_path / "run.log", ranks[0] + ended + ranks[1] + CANCELLED) == "a host name cannot be resolved"


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: Triton Error [CUDA]: out of memory",
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://hub.example/a: offline mode is enabled",
        'Warning  Failed  2s (x3 over 9s)  kubelet  Error: secret "hub" not found',
        'Warning  Failed  2s (x3 over 9s)  kubelet  Error: configmap "net" not found',
    ],
)
def test_an_error_that_the_program_survived_is_not_the_cause(tmp_path: Path, error: str) -> None:
    survived = f"{error}\n" + "compiling\n" * 30
    assert cause_of(tmp_path / "run.log", f"{survived}{FRAMES}ValueError: no data\n") == (
        "a process failed with ValueError"
    )


def test_the_exceptions_that_a_survived_lookup_caused_are_not_the_cause(tmp_path: Path) -> None:
    chain = f"{CAUGHT}{GAI}\nDuring handling of the above exception, another exception occurred:\n\n{CAUGHT}"
    chain += "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub.example'): Max retries exceeded\n"
    text = (chain + "loading a shard\n" * 9) * 3
    assert cause_of(tmp_path / "run.log", text + CANCELLED) == "the time limit"


@pytest.mark.parametrize(
    "text",
    [
        CAUGHT + GAI + "waiting\n" * 3 + CANCELLED,
        FRAMES + GAI + "rank 1 waits\n" * 9 + CANCELLED,
        CAUGHT + GAI + f"\nDuring handling of the above exception, another exception occurred:\n\n{FRAMES}"
        "requests.exceptions.ConnectionError: no route\n" + "rank 1 waits\n" * 9 + CANCELLED,
        labelled(3, CAUGHT + GAI) + labelled(1, "waiting\n" * 9) + CANCELLED,
        CAUGHT + GAI + "loading a shard\n" * 9,
    ],
    ids=["few lines", "uncaught", "chained", "other rank", "no other cause"],
)
def test_a_name_is_the_cause_if_the_process_did_not_continue(tmp_path: Path, text: str) -> None:
    assert cause_of(tmp_path / "run.log", text) == "a host name cannot be resolved"


def test_the_same_missing_module_in_several_processes_is_shown_where_it_is_first(tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    warnings = "".join(f"/opt/layers.py:{line}: FutureWarning: use another decorator\n  @custom\n" for line in range(9))
    log.write_text(f"{warnings}{FRAMES}ModuleNotFoundError: No module named 'amp_C'\n" * 4)

    found = diagnose([log])

    assert found
    assert (found.cause, found.line) == ("a Python module is missing in the job's environment", 22)


def test_a_long_import_error_of_several_processes_is_shown_where_it_is_first(
    tmp_path: Path,
) -> None:
    log = tmp_path / "job.out"
    error = f"ImportError: /opt/{'a' * 150}/b.so: undefined symbol: c10"
    text = "loading a shard\n" * 9 + f"{FRAMES}{error}\n"
    log.write_text("".join(f"[pod/trainer-worker-0/pretraining-container] {line}\n" for line in text.splitlines()) * 4)

    found = diagnose([log])

    assert found
    assert (found.cause, found.line) == ("a library of the image does not match", 13)


def test_levels_before_a_bar_name_no_ranks(tmp_path: Path) -> None:
    text = (
        "WARNING  | ModuleNotFoundError: No module named 'apex'\n"
        + "".join(f"INFO     | loading shard {number}\n" for number in range(20))
        + f"{FRAMES}RuntimeError: shapes differ\n"
    )
    assert cause_of(tmp_path / "run.log", text) == "a process failed with RuntimeError"


def report_of_torchrun(error: str) -> str:
    frames = "".join(f"    {line}\n" for line in FRAMES.splitlines()[1:])
    return (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-22_12:00:00\n  host      : gpu-a12\n"
        "  rank      : 7 (local_rank: 7)\n  exitcode  : -6 (pid: 812)\n"
        f"  error_file: /tmp/7/error.json\n  traceback : {FRAMES.splitlines()[0]}\n{frames}  {error}\n{'=' * 60}\n"
    )


def test_the_report_of_a_known_error_names_its_cause(tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    error = "RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasGemmEx(handle)`"
    log.write_text(report_of_torchrun(error))

    found = diagnose([log])

    assert found
    assert (found.cause, found.rank, found.host) == ("a GPU library failed", 7, "gpu-a12")
    assert found.evidence == error


@pytest.mark.parametrize(
    ("error", "cause"),
    [("CUBLASX gone", "a process failed with RuntimeError"), ("CUBLASX code 8", "a GPU library failed (8)")],
)
def test_the_report_of_an_error_has_the_cause_of_a_signature_whose_pattern_it_matches(
    tmp_path: Path, error: str, cause: str
) -> None:
    known = Signature(needle="CUBLASX", pattern=r"code (?P<detail>\d)", cause="a GPU library failed", primary=False)
    log = tmp_path / "job.out"
    log.write_text(f"note CUBLASX code 7\n{report_of_torchrun(f'RuntimeError: {error}')}")

    found = diagnose([log], [known])

    assert found
    assert (found.cause, found.rank) == (cause, 7)


def test_a_missing_cubin_file_does_not_hide_a_time_limit_although_its_warning_is_torn(tmp_path: Path) -> None:
    text = (
        "15: [rank15]:W1122 10:00:00.760000 24041 torch/_inductor/triton_bundler.py:2\n"
        "15: 28] [2/1] RuntimeError: ('Cubin file saved by TritonBundler not found at %s', '/.triton/cache/a.cubin')"
    )
    assert cause_of(tmp_path / "job.err", f"{text}\n{CANCELLED}") == "the time limit"


@pytest.mark.parametrize("below", [":0:rocdevice.cpp :2692: the device ended", "\n:: group"])
@pytest.mark.parametrize("text", ["RuntimeError: HIP error: invalid device function", "KeyError"])
def test_the_line_below_an_exception_is_no_part_of_its_message(tmp_path: Path, text: str, below: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{FRAMES}{text}\n{below}\n")
    found = last_exception([log])
    assert found
    assert found.evidence == text


@pytest.mark.parametrize("words", ["'gcc', '-I/usr/include/python3.12'", "'/usr/lib/python3.12/bin/ptxas', '-v'"])
def test_a_compiler_that_a_signal_ended_is_no_process_of_a_launcher(tmp_path: Path, words: str) -> None:
    error = f"subprocess.CalledProcessError: Command '[{words}]' died with <Signals.SIGSEGV: 11>."
    log = tmp_path / "run.log"
    log.write_text(f"{FRAMES}{error}\n")
    assert diagnose([log]) is None
    found = last_exception([log])
    assert found
    assert (found.cause, found.evidence) == ("a process failed with CalledProcessError", error)


@pytest.mark.parametrize(
    "line", ["/usr/share/lmod/init/bash: line 3: LMOD_X: unbound variable", "a.sh: line 3: 1: unbound variable"]
)
def test_a_variable_that_the_users_spec_cannot_set_is_no_cause(tmp_path: Path, line: str) -> None:
    assert cause_of(tmp_path / "run.log", f"{line}\n") is None


@pytest.mark.parametrize("script", ["/usr/bin/bash", "/usr/local/bin/launch.sh", "/home/me/usr/launch.sh", "launch.sh"])
def test_a_variable_that_a_script_of_the_user_lacks_is_the_cause(tmp_path: Path, script: str) -> None:
    line = f"{script}: line 3: DATA: unbound variable\n"
    assert cause_of(tmp_path / "run.log", line) == "a script needs a variable that is not set (DATA)"
