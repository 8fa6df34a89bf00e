"""The last error or the last lines of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.exceptions import RECENT
from llmb.logs.failures.failure_evidence import LONGEST_LINE, log_tail

PYTHON_TRACE = """\
Traceback (most recent call last):
  File "/opt/train.py", line 12, in <module>
    loss = net(x)
           ^^^^^^
  File "/opt/train.py", line 6, in forward
    raise ValueError("7 is no mesh")
"""

NATIVE_TRACE = """\
*** Check failure stack trace: ***
    @     0x7f3f4f53fb80  absl::log_internal::LogMessage::Fail()
    @     0x7f3f4f540c43  absl::log_internal::LogMessageFatal::~LogMessageFatal()
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x42 (0x1518a06137d2 in libc10.so)
 0 0x0000000000042520 __sigaction()  ???:0
/lib/x86_64-linux-gnu/libc.so.6(+0x42520)[0x7f2d5a842520]
Fatal Python error: Aborted

Thread 0x00007f2d4bfff640 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 359 in wait
Current thread 0x00007f2d5a7fe740 (most recent call first):
  <no Python frame>

Extension modules: numpy._core._multiarray_umath, jaxlib.cpu_feature_guard, zstandard.backend_c (total: 93)
"""


def words(folder: Path, *texts: str) -> str:
    logs = [folder / f"{number}.log" for number, _ in enumerate(texts)]
    for log, text in zip(logs, texts, strict=True):
        log.write_text(text)
    return log_tail([folder / "missing.log", folder, *logs])


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: 7 is no mesh",
        "KeyboardInterrupt",
        "jax.errors.JaxRuntimeError: INTERNAL: ptxas exited with non-zero error code 11",
        "F1121 05:01:02.075587  157988 client.h:77] the link is down",
        "F0000 00:00:1732165262.075587  157988 client.h:77] the link is down",
        "F20261121 05:01:02.075587  157988 client.h:77] the link is down",
    ],
)
@pytest.mark.parametrize(
    "label", ["", "3: ", "[rank3]: ", " 3: [rank3]: ", "[default3]:", "node-7: ", "[1,3]<stderr>:", "main/3 "]
)
def test_the_error_is_preferred_to_what_is_printed_after_it(tmp_path: Path, error: str, label: str) -> None:
    text = f"{PYTHON_TRACE}{error}\nwandb: synced\nthe end\n"
    labelled = "".join(label + line + "\n" for line in text.splitlines())

    assert words(tmp_path, labelled) == (label + error).strip()


def test_an_error_is_shown_without_colours(tmp_path: Path) -> None:
    trace = PYTHON_TRACE.replace('"/opt/train.py"', '\x1b[35m"/opt/train.py"\x1b[0m').replace(
        "net", "\x1b[31mnet\x1b[0m"
    )

    assert words(tmp_path, f"{trace}\x1b[1;35mValueError\x1b[0m: \x1b[35m7\x1b[0m\nthe end\n") == "ValueError: 7"
    assert words(tmp_path, f"{trace}\x1b[31mlast\x1b[0m\n") == "last"


def test_the_last_of_several_errors_counts(tmp_path: Path) -> None:
    assert words(tmp_path, f"OSError: first\n{PYTHON_TRACE}ValueError: last\n") == "ValueError: last"


def test_native_stack_traces_do_not_bury_the_error(tmp_path: Path) -> None:
    error = "F1121 05:01:02.075587  157988 client.h:77] Check failed: 1 == 2"
    native = NATIVE_TRACE.replace("Fatal Python error: Aborted\n", "") * 40

    assert words(tmp_path, f"{error}\n{native}") == error
    assert words(tmp_path, NATIVE_TRACE) == "Fatal Python error: Aborted"


def test_the_last_lines_without_frames_are_shown_if_there_is_no_error(tmp_path: Path) -> None:
    text = f"zero\none\n\ntwo\n{PYTHON_TRACE}three\n{NATIVE_TRACE.replace('Fatal Python error: Aborted', '')}"

    assert words(tmp_path, text) == "one | two | three"


def test_an_error_far_from_the_end_does_not_count(tmp_path: Path) -> None:
    text = "ValueError: retried\n" + "".join(f"step {number}\n" for number in range(RECENT))

    assert words(tmp_path, text) == f"step {RECENT - 3} | step {RECENT - 2} | step {RECENT - 1}"


def test_the_first_log_with_an_error_counts(tmp_path: Path) -> None:
    assert words(tmp_path, "waiting\n", "", "RuntimeError: mine\n") == "RuntimeError: mine"
    assert words(tmp_path, "", "waiting\n") == "waiting"


@pytest.mark.parametrize("text", ["", "\n\n", PYTHON_TRACE.partition("\n")[0]])
def test_an_empty_log_has_no_last_lines(tmp_path: Path, text: str) -> None:
    assert words(tmp_path, text) == ""


def test_the_last_lines_are_short_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\xff" * 1_000_000)

    assert log_tail([log]) == "\N{REPLACEMENT CHARACTER}" * LONGEST_LINE
