"""Remedies of lines whose causes need different ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import llmb
from llmb import Failure

ROOT = Path(__file__).parents[1]
XID = ROOT / "core/src/llmb/logs/failures/signatures/xid.toml"
NUMBERS = [
    number
    for entry in tomllib.loads(XID.read_text())["signatures"]
    for number in entry.get("meanings", {})
]  # fmt: skip


def failure_of(folder: Path, *lines: str) -> Failure:
    log = folder / "a.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    failure = llmb.parse([log], framework="maxtext").failure
    assert failure
    return failure


@pytest.mark.parametrize(
    ("number", "origin", "part"),
    [
        (13, "user", "`llmb recipes ADDRESS`"),
        (43, "user", "`llmb recipes ADDRESS`"),
        (45, None, "find the error that came before, `sudo dmesg -T | grep -i xid | tail`"),
        (48, "infrastructure", "`dcgmi diag -r 3`"),
        (62, "infrastructure", "`sudo nvidia-smi --gpu-reset`"),
        (74, "infrastructure", "`dcgmi diag -r 3`"),
        (79, "infrastructure", "`sudo reboot`"),
        (92, None, "find the error that came before, `sudo dmesg -T | grep -i xid | tail`"),
        (94, "infrastructure", "run again; have the site reset this GPU"),
        (109, "infrastructure", "`sudo nvidia-smi --gpu-reset`"),
        (119, "infrastructure", "`sudo nvidia-smi --gpu-reset`"),
        (149, "infrastructure", "`dcgmi diag -r 3`"),
        (154, "infrastructure", "`sudo nvidia-smi --gpu-reset`"),
        (999, None, "docs.nvidia.com/deploy/xid-errors"),
    ],
)
def test_the_remedy_of_an_error_of_the_gpu_depends_on_its_number(
    tmp_path: Path, number: int, origin: str | None, part: str
) -> None:
    failure = failure_of(tmp_path, f"NVRM: Xid (PCI:0000:65:00): {number}, pid=7, name=python3, Ch 00000008")
    assert failure.origin == origin
    assert part in failure.remedy
    assert number != 79 or "dcgmi" not in failure.remedy


@pytest.mark.parametrize("number", NUMBERS)
def test_a_channel_that_an_error_removed_has_the_remedy_of_that_error(tmp_path: Path, number: str) -> None:
    error = failure_of(tmp_path, f"NVRM: Xid (PCI:0000:65:00): {number}, pid=7, name=python3, Ch 00000008")
    assert error.cause.startswith(f"the driver reports a GPU error ({number}: ")
    removed = f"NVRM: Xid (PCI:0000:65:00): 45, pid=7, name=python3, Ch 1 caused by previous Xid {number}"
    following = failure_of(tmp_path, removed)
    assert following.cause == error.cause
    assert (following.remedy == error.remedy) == (number not in {"136", "137"})


@pytest.mark.parametrize(
    ("line", "cause", "part"),
    [
        (
            "slurmstepd: error: pyxis:     tar: ./usr/lib/x: Cannot write: No space left on device",
            "a disk is full",
            "ENROOT_TEMP_PATH, ENROOT_CACHE_PATH and ENROOT_DATA_PATH",
        ),
        (
            "slurmstepd: error: pyxis:     Write failed because No space left on device",
            "a disk is full",
            "runtime_path in pyxis.conf",
        ),
        ("tar: ./data/x: Cannot write: No space left on device", "a disk is full", "set target.workdir="),
        (
            "FATAL:   While making image: Write failed because No space left on device",
            "a disk is full",
            "set target.workdir=",
        ),
        ("OSError: [Errno 122] Disk quota exceeded", "the disk quota is used up", "env.TRITON_CACHE_DIR=/tmp/triton"),
    ],
)
def test_a_full_disk_has_the_remedy_of_the_program_that_filled_it(
    tmp_path: Path, line: str, cause: str, part: str
) -> None:
    failure = failure_of(tmp_path, line)
    assert (failure.cause, failure.origin) == (cause, "infrastructure")
    assert part in failure.remedy


@pytest.mark.parametrize(
    "line",
    [
        "[rank0]: RuntimeError: DataLoader worker (pid 2637) is killed by signal: Killed.",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "[rank0]: MemoryError",
        "[12345.6] Out of memory: Killed process 48213 (python3) total-vm:1853273216kB",
        "[ 123.4] Memory cgroup out of memory: Killed process 42 (python3)",
        "OSError: [Errno 12] Cannot allocate memory",
        "=>> PBS: job killed: mem 132120576kb exceeded limit 131072000kb",
        "slurmstepd: error: Detected 3 oom_kill events in StepId=9.0. Some of the step tasks have been OOM Killed.",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=3.0. Some of your processes may have been killed",
        "srun: error: n01: task 3: Out Of Memory",
    ],
)
def test_memory_of_the_host_depends_on_the_data_loader_and_not_on_the_micro_batch(tmp_path: Path, line: str) -> None:
    failure = failure_of(tmp_path, line)
    assert failure.cause == "the host is out of memory"
    assert "fewer data loader workers" in failure.remedy
    assert "micro batch" not in failure.remedy


@pytest.mark.parametrize("error", ["error No such device", "error Network is unreachable", "61 No data available"])
def test_a_queue_pair_that_cannot_connect_needs_another_gid(tmp_path: Path, error: str) -> None:
    remedy = failure_of(
        tmp_path, f"n1:7:8 [0] misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with {error}"
    ).remedy
    assert remedy.index("`show_gids`") < remedy.index("env.NCCL_IB_GID_INDEX") < remedy.index("`ibstat`")


@pytest.mark.parametrize(
    "line",
    [
        "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to 192.0.0.1:1234",
        "rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed.",
    ],
)
def test_a_rendezvous_that_failed_is_first_a_question_of_the_network(tmp_path: Path, line: str) -> None:
    remedy = failure_of(tmp_path, line).remedy
    assert remedy.index("`nc -vz HOST PORT`") < remedy.index("find the rank that failed first")


def test_both_variables_for_the_certificates_of_a_site_are_named(tmp_path: Path) -> None:
    line = (
        "requests.exceptions.SSLError: HTTPSConnectionPool: (SSLError(1, 'certificate verify failed: unable to get'))"
    )
    remedy = failure_of(tmp_path, line).remedy
    assert "--set env.REQUESTS_CA_BUNDLE=/path/to/ca.pem --set env.SSL_CERT_FILE=/path/to/ca.pem`" in remedy


@pytest.mark.parametrize(
    ("line", "cause", "part"),
    [
        ("x.py: error: unrecognized arguments: --tp 2", "the program does not know an argument", "remove or correct"),
        ("x.py: error: unrecognized arguments: --local_rank=1", "the program does not know an argument", "`torchrun`"),
        (
            "x.py: error: argument --tp: invalid int value: 'a'",
            "the program rejects the value of an argument",
            "correct",
        ),
        ("x.py: error: the following arguments are required: --tp", "the program needs another argument", "add the"),
        (
            "omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct",
            "a value of the configuration is missing or invalid (ConfigAttributeError)",
            "`PROGRAM +KEY=VALUE`",
        ),
        (
            "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: lr",
            "a value of the configuration is missing or invalid (MissingMandatoryValue)",
            "`PROGRAM KEY=VALUE`",
        ),
        (
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for TrainingConfig",
            "a value of the configuration is missing or invalid (TrainingConfig)",
            "the lines after this one name",
        ),
    ],
)
def test_a_wrong_argument_is_corrected_and_not_compared(tmp_path: Path, line: str, cause: str, part: str) -> None:
    failure = failure_of(tmp_path, line)
    assert (failure.cause, failure.origin) == (cause, "user")
    assert part in failure.remedy
    assert "compare" not in failure.remedy


@pytest.mark.parametrize(
    ("line", "cause", "part"),
    [
        (
            "salloc: error: Unable to allocate resources: Connection timed out",
            "Slurm granted no resources",
            "`sinfo -t idle`",
        ),
        (
            "salloc: error: Unable to allocate resources: Invalid qos",
            "Slurm granted no resources",
            "`llmb doctor SPEC`",
        ),
        (
            "srun: error: Unable to create step for job 4711: More processors requested than permitted",
            "Slurm did not start a step of the job",
            "lower --cpus-per-task",
        ),
        (
            "srun: error: Unable to create step for job 4711: Requested nodes are busy",
            "Slurm did not start a step of the job",
            "`srun --overlap PROGRAM`",
        ),
        (
            "srun: error: Unable to create step for job 4711: Invalid job id specified",
            "Slurm did not start a step of the job",
            "correct what srun names",
        ),
    ],
)
def test_the_reason_of_slurm_decides_the_remedy(tmp_path: Path, line: str, cause: str, part: str) -> None:
    failure = failure_of(tmp_path, line)
    assert failure.cause == cause
    assert part in failure.remedy


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 2973516 got signal: 1", "1"),
        ("WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers", "1"),
        ("Received Signals.SIGHUP death signal, shutting down workers", "SIGHUP"),
        ("/w/run.sh: line 4: 8441 Hangup      python train.py", ""),
    ],
)
def test_a_program_whose_terminal_ended_needs_no_terminal(tmp_path: Path, line: str, detail: str) -> None:
    failure = failure_of(tmp_path, line)
    assert not detail or f"signal {detail} (its terminal or ssh session ended)" in failure.cause
    assert failure.origin == "user"
    assert "`nohup PROGRAM`" in failure.remedy


@pytest.mark.parametrize(
    "line", ["SignalException: Process 7 got signal: 15", "Received 15 death signal, shutting down workers"]
)
def test_a_program_that_another_process_ended_has_another_remedy(tmp_path: Path, line: str) -> None:
    failure = failure_of(tmp_path, line)
    assert failure.cause == "unknown: a process received signal 15"
    assert failure.remedy.startswith("find who ended it")


def test_an_invalid_instruction_of_the_gpu_is_no_failure_of_its_hardware(tmp_path: Path) -> None:
    failure = failure_of(tmp_path, "RuntimeError: CUDA error: an illegal instruction was encountered")
    assert failure.origin == "user"
    assert "`llmb recipes ADDRESS`" in failure.remedy
