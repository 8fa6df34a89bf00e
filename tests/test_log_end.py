"""The reason why an existing log ends: messages of the scheduler, and the last lines of a process."""

from __future__ import annotations

import os
import re
from pathlib import Path
from threading import Thread

import pytest
from parts.command_line import Llmb, command_line

REAL = Path(__file__).parents[2] / "shared" / "logs"

STAMP = "2026-11-21T06:57:14"
LIMIT = f"slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT {STAMP} DUE TO TIME LIMIT ***\n"
JOB = f"slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT {STAMP} ***\n"
STEP = f"0: slurmstepd: error: *** STEP 12.0 ON node1 CANCELLED AT {STAMP} ***\n"
EXITED = "srun: error: node1: task 3: Exited with exit code 3\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.16 GiB.\n"
ERROR = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\nValueError: no data\n'
CAUGHT = ERROR.replace("in <module>", "in upload")
IGNORED = f"Exception ignored in: <function Pool.__del__ at 0x7f0>\n{ERROR}"
IN_A_THREAD = f"Exception in thread Thread-3 (_pin_memory_loop):\n{ERROR}"
TRACKER = """\
Traceback (most recent call last):
  File "/usr/lib/python3.13/multiprocessing/resource_tracker.py", line 301, in main
    cache[rtype].remove(name)
    ~~~~~~~~~~~~~~~~~~~^^^^^^
KeyError: '/psm_2b6c41a5'
"""
STORE = """\
[rank3]:[W601 12:00:00.123 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=80): failed to recv, got 0 bytes
Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:678 (most recent call first):
"""
SUCCEEDED = ':::MLLOG {"key": "run_stop", "value": null, "metadata": {"lineno": 3, "status": "success"}}\n'


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def steps(count: int, first: int = 0) -> str:
    return "".join(f"completed step: {step}, seconds: 2.000, loss: 8.0\n" for step in range(first, first + count))


def ended(llmb: Llmb, path: Path, framework: str = "maxtext") -> tuple[str, str | None, int | None]:
    """Return the status, the cause of failure, and its line."""
    parsed = llmb("parse", path, "--framework", framework, "--json").json
    failure = parsed["failure"] or {"cause": None, "line": None}
    return parsed["status"], failure["cause"], failure["line"]


def of_text(llmb: Llmb, folder: Path, text: str) -> tuple[str, str | None, int | None]:
    path = folder / "run.log"
    path.write_text(text)
    return ended(llmb, path)


def test_many_stack_traces_below_it_do_not_hide_the_time_limit(llmb: Llmb, tmp_path: Path) -> None:
    traces = "".join(f"{rank}: {line}\n" for rank in range(12_000) for line in ERROR.splitlines()[:3])
    assert len(traces) > 1 << 20
    text = steps(3) + LIMIT + traces + "0: KeyboardInterrupt\n"
    assert of_text(llmb, tmp_path, text)[1:] == ("the job reached its time limit", 4)


@pytest.mark.parametrize("message", [LIMIT, EXITED])
def test_colours_in_the_message_of_a_scheduler_do_not_hide_the_cause(llmb: Llmb, tmp_path: Path, message: str) -> None:
    coloured = re.sub(r"\w+", "\x1b[31m\\g<0>\x1b[0m", message)
    assert of_text(llmb, tmp_path, steps(3) + coloured) == of_text(llmb, tmp_path, steps(3) + message)


def test_the_failure_in_a_pipe_is_found(llmb: Llmb, tmp_path: Path) -> None:
    pipe = tmp_path / "run.log"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=[steps(5) + ERROR])
    writer.start()
    found = ended(llmb, pipe)
    writer.join()
    assert found == ("incomplete", "a process failed with ValueError", 9)


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (LIMIT, "the job reached its time limit"),
        (JOB, "the job was cancelled"),
        (STEP, "the job was cancelled"),
        (JOB.replace(" ***\n", " DUE TO JOB REQUEUE ***\n"), "the scheduler took the job's nodes for another one"),
        ("srun: error: Node failure on node7\n", "a node of the job failed"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=12.0.\n", "the host is out of memory"),
        (EXITED, "unknown: a rank failed (exit code 3)"),
        ("Fatal Python error: Aborted\n\nCurrent thread 0x7 (most recent call first):\n", "unknown: a process failed"),
        (EXITED.replace("Exited with exit code 3", "Segmentation fault"), "a rank crashed (segmentation fault)"),
        (OOM, "the accelerator is out of memory"),
        ("slurmstepd: error: pyxis: couldn't start container\n", "the container could not be started"),
        (ERROR.splitlines(keepends=True)[-1], "a process failed with ValueError"),
        ("\x1b[1;35mValueError\x1b[0m: \x1b[35mno data\x1b[0m\n", "a process failed with ValueError"),
        ("binascii.Error: Incorrect padding\n", "a process failed with binascii.Error"),
        ("zlib.error: Error -3 while decompressing data\n", "a process failed with zlib.error"),
        ("IndexError: 7\n" + IN_A_THREAD + TRACKER, "a process failed with IndexError"),
    ],
)
def test_a_log_that_states_no_number_of_steps_is_incomplete_where_its_end_tells_of_a_failure(
    llmb: Llmb, tmp_path: Path, end: str, cause: str
) -> None:
    assert of_text(llmb, tmp_path, steps(5) + end) == ("incomplete", cause, 6)


def test_an_uncaught_exception_below_a_message_of_another_thread_is_the_cause(llmb: Llmb, tmp_path: Path) -> None:
    text = f"{steps(5)}Exception in thread pool\ntrying again\n{ERROR}"
    assert of_text(llmb, tmp_path, text) == ("incomplete", "a process failed with ValueError", 11)


REPORT = """\
E1122 10:00:07.1 991 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 9)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-22_10:00:07
  host      : node1
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 10)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
"""
ON_EACH_RANK = {
    "torchrun": (ERROR * 8 + REPORT * 8, 9),
    "torch 2.4": ("".join(f"[rank{rank}]: {line}" for rank in range(8) for line in ERROR.splitlines(True)), 9),
    "srun": (ERROR * 8 + "".join(f"srun: error: node1: task {rank}: Aborted\n" for rank in range(8)), 9),
    "srun -l": (
        "".join(f"{rank:>2}: {line}" for line in ERROR.splitlines(True) for rank in range(16))
        + "".join(f"{rank:>2}: shutting down {number}\n" for rank in range(1, 16) for number in range(20)),
        6 + 3 * 16,
    ),
    "without labels": (ERROR + "another rank goes on\n" * 190, 9),
    "python -m": (ERROR.replace("in <module>", "in _run_module_as_main") + "another rank goes on\n" * 190, 9),
    "messages between": ((ERROR + "to debug, set a variable\n" * 3) * 8, 9),
}


@pytest.mark.parametrize("launcher", ON_EACH_RANK)
@pytest.mark.parametrize(
    "name", ["ValueError", "binascii.Error", "zlib.error", "queue.Empty", "zipfile.BadZipFile", "Exception"]
)
def test_the_first_exception_is_the_cause_however_many_ranks_report_theirs(
    llmb: Llmb, tmp_path: Path, launcher: str, name: str
) -> None:
    text, line = ON_EACH_RANK[launcher]
    shown = name if name.endswith((".Error", ".error")) else name.rpartition(".")[2]

    assert of_text(llmb, tmp_path, steps(5) + text.replace("ValueError", name)) == (
        "incomplete", f"a process failed with {shown}", line,
    )  # fmt: skip


PEER = "[rank0]: RuntimeError: [/gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.2]:1234\n"
POLLED = "E1121 {}.0 1 agent.cc:3] Polled an error from coordination service\n"


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (PEER + LIMIT, ("the job reached its time limit", 7)),
        (PEER + STORE + "waiting\n" * 20 + JOB, ("the job was cancelled", 29)),
        (POLLED.format("06:56:50") + LIMIT, ("the job reached its time limit", 7)),
        (POLLED.format("02:10:00") + LIMIT, ("another process of the run died", 6)),  # the others waited for hours
        (PEER + "waiting\n" * 4000 + LIMIT, ("another process of the run died (10.0.0.2)", 6)),
        (ERROR + PEER + LIMIT, ("a process failed with ValueError", 9)),
    ],
)
def test_a_process_that_dies_just_before_the_message_of_the_scheduler_does_not_hide_it(
    llmb: Llmb, tmp_path: Path, end: str, cause: tuple[str, int]
) -> None:
    assert of_text(llmb, tmp_path, steps(5) + end)[1:] == cause


def test_the_last_exception_of_a_chain_is_the_cause(llmb: Llmb, tmp_path: Path) -> None:
    chain = f"{ERROR}\nDuring handling of the above exception, another exception occurred:\n\n"

    assert of_text(llmb, tmp_path, steps(5) + chain + ERROR.replace("ValueError", "KeyError"))[1:] == (
        "a process failed with KeyError", 16,
    )  # fmt: skip


@pytest.mark.parametrize(
    "end",
    [
        "done\n",
        f"{ERROR}{steps(3, first=5)}",  # it was logged, and the run continued
        "".join(f"3: {line}" for line in ERROR.splitlines(True)) + steps(3, first=5),
        IGNORED,
        IN_A_THREAD,
        IN_A_THREAD.replace("ValueError: no data", "EOFError") + TRACKER * 2,
        CAUGHT + "training goes on\n" * 10,
        SUCCEEDED + LIMIT,  # it hung at its exit
        SUCCEEDED + OOM + ERROR + EXITED,  # it failed at its exit
        "".join(f"4: {line}" for line in f"Import of apex failed with: {ERROR}".splitlines(True)),
        STORE,  # of a rank that exited after the one with the store
        STORE + steps(3, first=5),
        LIMIT + steps(20, first=5),  # the scheduler began it again
        LIMIT + steps(4),  # the same, from the beginning
        OOM + steps(20, first=5),  # it was caught
    ],
)
def test_what_is_no_failure_leaves_it_complete(llmb: Llmb, tmp_path: Path, end: str) -> None:
    assert of_text(llmb, tmp_path, steps(5) + end) == ("complete", None, None)


MEMORY = "[Errno 12] Cannot allocate memory\n"
WARNING = f"UserWarning: going on without it: {MEMORY}"


@pytest.mark.parametrize(
    ("text", "ended_as"),
    [
        (WARNING + steps(1), ("complete", None, None)),
        (WARNING + steps(5) + LIMIT, ("incomplete", "the job reached its time limit", 7)),
        (WARNING + WARNING + steps(5) + WARNING + steps(20, first=5), ("complete", None, None)),
        (ERROR + steps(5) + LIMIT, ("incomplete", "the job reached its time limit", 10)),
        (steps(5) + WARNING + steps(3, first=5), ("complete", None, None)),
        (steps(5) + STORE + WARNING + LIMIT, ("incomplete", "the job reached its time limit", 9)),
        (steps(5) + MEMORY + steps(3, first=5), ("incomplete", "the host is out of memory", 6)),
    ],
)
def test_what_a_log_tells_before_the_first_step_is_a_warning(
    llmb: Llmb, tmp_path: Path, text: str, ended_as: tuple[str, str | None, int | None]
) -> None:
    assert of_text(llmb, tmp_path, text) == ended_as


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ("", (None, None)),
        (LIMIT, ("the job reached its time limit", 21)),
        (OOM, ("the accelerator is out of memory", 21)),
        (ERROR, ("a process failed with ValueError", 24)),
        (ERROR + "another rank goes on\n" * 190, ("a process failed with ValueError", 24)),
        (ERROR + "another rank goes on\n" * 250, (None, None)),
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        " iteration {step}/ 100 | elapsed time per iteration (ms): 1000.0 | lm loss: 1.0 |\n",
        "Step Time : 1.00s GPU utilization: 400.0TFLOP/s/GPU\n",
    ],
)
def test_a_warning_is_no_cause_either_where_a_log_falls_short_of_the_steps_asked_for(
    llmb: Llmb, tmp_path: Path, line: str, end: str, cause: tuple[str, int]
) -> None:
    path = tmp_path / "run.log"
    lines = [line.format(step=step) for step in range(1, 19)]
    path.write_text("".join((WARNING, *lines[:2], WARNING, *lines[2:], end)))

    parsed = llmb("parse", path, "--framework", "megatron_bridge", "--steps", "100", "--json").json

    failure = parsed["failure"] or {"cause": None, "line": None}
    assert parsed["status"] == "incomplete"
    assert (failure["cause"], failure["line"]) == cause


def test_an_exception_before_lines_of_other_ranks_is_the_cause_if_the_end_is_missing(
    llmb: Llmb, tmp_path: Path
) -> None:
    framework = tmp_path / "mine.toml"
    framework.write_text('command = ["a.py"]\nlog = { line = "seconds: {time_s},", end = ["done"] }\n')
    path = tmp_path / "run.log"
    for end, cause in (("", "a process failed with ValueError"), ("done\n", None)):
        path.write_text(steps(5) + ERROR + "another rank goes on\n" * 190 + end)
        assert ended(llmb, path, str(framework))[1] == cause


def test_steps_that_come_while_the_job_is_ended_change_nothing(llmb: Llmb, tmp_path: Path) -> None:
    assert of_text(llmb, tmp_path, steps(5) + LIMIT + steps(3, first=5)) == (
        "incomplete", "the job reached its time limit", 6,
    )  # fmt: skip


@pytest.mark.parametrize("end", [LIMIT, EXITED, ERROR, OOM])
def test_a_log_with_the_last_of_a_known_number_of_steps_is_complete(llmb: Llmb, tmp_path: Path, end: str) -> None:
    path = tmp_path / "run.log"
    path.write_text(steps(5) + end)

    answer = llmb("parse", path, "--framework", "maxtext", "--steps", "5", "--json")

    assert (answer.json["status"], answer.json["failure"]) == ("complete", None)


@pytest.mark.parametrize(
    ("text", "cause", "line"),
    [
        (OOM + LIMIT, "the accelerator is out of memory", 1),
        (LIMIT + OOM, "the accelerator is out of memory", 2),
        (ERROR + STEP, "a process failed with ValueError", 4),
        (STEP + ERROR, "the job was cancelled", 1),
        (EXITED + STEP, "unknown: a rank failed (exit code 3)", 1),  # srun ended the others
        (ERROR + EXITED + STEP, "a process failed with ValueError", 4),
    ],
)
def test_a_scheduler_s_word_is_the_cause_unless_a_process_failed_before(
    llmb: Llmb, tmp_path: Path, text: str, cause: str | None, line: int | None
) -> None:
    assert of_text(llmb, tmp_path, text) == ("no_data", cause, line)


CAUSES = {
    "failure/09": ("a container mount is invalid", 7),
    "failure/10": ("the dataset has another format than the program expects", 90),
    "failure/15": ("the job was cancelled", 27),
    "failure/17": ("the job was cancelled", 13),
    "failure/25": ("a step requests GPUs that the job does not have", 1),
    "failure/35": ("the registry returned an invalid response", 9),
    "failure/37": ("enroot cannot write its directories on the node", 5),
    "failure/39": ("the registry rejected the credentials for the image", 5),
    "failure/41": ("the scheduler took the job's nodes for another one", 1),
    "failure/43": ("the scheduler took the job's nodes for another one", 3),
    "failure/45": ("the job reached its time limit", 2),
    "failure/59": ("Slurm rejected the job", 2),
    "megatron/03": ("the job was cancelled", 1560),
    "megatron/05": ("the job reached its time limit", 2398),
    "megatron/07": ("the job reached its time limit", 58),
    "failure/03": (None, None),  # it hung at its exit
}


@pytest.mark.parametrize("name", CAUSES)
def test_a_real_log_has_its_true_cause(llmb: Llmb, name: str) -> None:
    if not REAL.is_dir():
        pytest.skip("the real logs are not here")
    [path] = REAL.glob(f"{name}-*")

    assert ended(llmb, path, "megatron_bridge")[1:] == CAUSES[name]
