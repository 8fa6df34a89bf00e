"""Labels of launchers, and the rank and the host that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import diagnose, last_exception
from llmb.logs.processes import Process, process_of_line
from llmb.logs.rank_labels import rank_label, split_label

LABELS = {
    "[gpu-a12:3]:": Process(host="gpu-a12"),
    "[worker3]:": Process(),
    "[rank11]: ": Process(rank=11),
    "[1,mpirank:5,algo-2]<stderr>:": Process(rank=5, host="algo-2"),
    "[1,5]<stdout>:": Process(rank=5),
    "[pod/trainer-worker-0/main] ": Process(host="trainer-worker-0"),
    "[pod/trainer-worker-0/main] [rank11]: ": Process(rank=11, host="trainer-worker-0"),
    "worker-1  | ": Process(),
    "trainer-1    | [rank11]: ": Process(rank=11),
    "trainer.1.x3k@gpu-a12    | [rank11]: ": Process(rank=11),
    "(Worker pid=812, ip=10.0.0.9) ": Process(host="10.0.0.9"),
    "(pretrain, pid=4112) ": Process(),
    "gpu-a12 python[1234]: ": Process(host="gpu-a12"),
    "jupiter1 train@a/b[1234]: ": Process(host="jupiter1"),
    "gpu-a12 torchrun[1234]: [rank11]: ": Process(rank=11, host="gpu-a12"),
    "[gpu-a12:3]:[rank11]: ": Process(rank=11, host="gpu-a12"),
    "gpu-a12: rank11: ": Process(rank=11, host="gpu-a12"),
}
TIMES = ["", "2026-11-02T10:00:00.123456789Z ", "[2026-11-02T10:00:00+08:00] ", "Nov  2 10:00:00 "]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("time", TIMES)
def test_an_exception_is_found_behind_the_label_of_its_rank(tmp_path: Path, time: str, label: str) -> None:
    trace = (
        "Traceback (most recent call last):",
        '  File "/opt/a.py", line 3, in <module>',
        "    main()",
        "SkyError: it",
    )
    log = tmp_path / "run.log"
    log.write_text("".join(f"{time}{label}{line}\n" for line in ("step 1", *trace)))

    found = last_exception([log])

    assert found is not None
    assert (found.cause, found.line) == ("a process failed with SkyError", 5)
    assert Process(found.rank, found.host) == LABELS[label]


@pytest.mark.parametrize("label", LABELS)
def test_the_label_of_a_line_is_complete(label: str) -> None:
    assert split_label(f"{label}step 3".encode()) == (label.encode(), b"step 3")
    assert process_of_line(f"{label}step 3".encode()) == LABELS[label]


@pytest.mark.parametrize(
    "text",
    [
        "[step12]: loss 3",
        "[E socket.cpp:4] [c10d]",
        "(see pid=9 of 3) x",
        "[a:1:2:3] x",
        "train step[12]: loss 3",
        "iteration 5[12]: loss 3",
        "node python[x]: y",
        "node 12[34]: y",
        "node python[34] y",
        "step   | 3",
        "train_epoch    | 3",
        "loss | 3",
        "step12  | 3",
        "INFO     | step 3",
        "WARNING  | step 3",
        "CRITICAL  | step 3",
        "main     | step 3",
        "lr       | 3",
        "0  | embedding | 3",
    ],
)
def test_other_brackets_are_no_label(text: str) -> None:
    assert split_label(text.encode()) == (b"", text.encode())


@pytest.mark.parametrize("begin", ["\ufeff", "\ufeffNov 02 10:00:00 ", "Nov 02 10:00:00 gpu-a12 python[1234]: "])
def test_what_comes_before_the_label_of_a_step_is_no_part_of_it(begin: str) -> None:
    assert rank_label(f"{begin}[rank3]: step 4".encode()) == b"[rank3]: "


@pytest.mark.parametrize("outer", ["[pod/trainer-0/main] ", "worker-1  | "])
def test_a_time_between_two_labels_is_no_part_of_them(tmp_path: Path, outer: str) -> None:
    line = f"{outer}2026-11-02T10:00:00.5Z [rank7]: 10:00:00 torch.OutOfMemoryError: CUDA out of memory."
    text = b"torch.OutOfMemoryError: CUDA out of memory."
    assert split_label(line.encode()) == (f"{outer}[rank7]: ".encode(), text)
    assert rank_label(line.encode()) == f"{outer}[rank7]: ".encode()


def test_the_program_before_a_label_is_no_part_of_the_label_of_a_rank() -> None:
    assert rank_label(b"Nov 02 10:00:00 gpu-a12 python[1234]: step 4") == b""


def test_the_rank_of_a_signature_with_a_time_before_its_label(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("2026-11-02T10:00:00.5Z [rank7]: torch.OutOfMemoryError: CUDA out of memory.\n")

    found = diagnose([log])

    assert found is not None
    assert found.rank == 7


@pytest.mark.parametrize(
    "label",
    ["step12", "STEP12", "global_step12", "Iter_3", "ITER3", "it3", "iters10", "Update5", "epoch-1", "GPU3", "error7"],
)
def test_a_count_or_a_device_at_the_beginning_of_a_line_is_no_host(label: str) -> None:
    assert split_label(f"{label}: loss 3".encode())[0] == b""
    assert process_of_line(f"{label}: loss 3".encode()) == Process()


@pytest.mark.parametrize("host", ["gpu-a12", "gpu12", "iter3x4", "step-a12", "my-batch3", "kit3"])
def test_a_host_whose_name_begins_with_such_a_word_is_a_host(host: str) -> None:
    assert process_of_line(f"{host}: loss 3".encode()) == Process(host=host)


@pytest.mark.parametrize("word", ["rank", "Rank_", "RANK"])
def test_the_rank_of_an_error_behind_the_word_rank(tmp_path: Path, word: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{word}3: torch.OutOfMemoryError: CUDA out of memory.\n")

    found = diagnose([log])

    assert found is not None
    assert (found.rank, found.host) == (3, None)
