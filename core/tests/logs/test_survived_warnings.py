"""Warnings and imports that a program survived, and those that are the only hint of a cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs import read_blocks
from llmb.logs.failures.choose_cause import diagnose
from llmb.values.failure import Failure, Signature

FALLEN = Signature(needle="the sky fell", cause="the sky", remedy="hold it up")
SHAKEN = Signature(needle="it shook", cause="a shock", remedy="look elsewhere", primary=False)
ENDED = Signature(needle="it ended", cause="an end", remedy="look elsewhere", primary=False, report=True)
LONG = "Retry(total=4, connect=None, read=None, redirect=None, status=None) " * 5
WARNINGS = {
    "logging": "WARNING:root:not installed: {}",
    "glog": "W0317 10:00:00.000000 1 a.py:40] not loaded: {}",
    "XLA": "2026-01-01 10:00:00.0: W external/xla/a.cc:10] left out: {}",
    "TensorFlow": "2026-01-01 10:00:00.0: W tensorflow/core/a.cc:10] left out: {}",
    "TSL": "2026-01-01 10:00:00.0: W tsl/platform/a.cc:10] left out: {}",
    "c10d": "[rank3]:[W1122 12:00:00.0 a.cpp:10] again: {}",
    "Python": "/opt/a.py:10: UserWarning: not read: {}",
    "wandb": "wandb: Network error, entering retry loop: {}",
    "Kubernetes": "Warning  FailedMount  3s (x2 over 9s)  kubelet  not mounted: {}",
    "pip": f"WARNING: Retrying ({LONG}) after connection broken by '{{}}'",
    "huggingface_hub": f"'{{}} {LONG}' thrown while requesting HEAD https://huggingface.co/a/b",
}
UNCAUGHT = (
    'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    main()\nZeroDivisionError: 1/0\n'
)


def find(folder: Path, text: str, *, warnings: bool = True) -> Failure | None:
    log = folder / "run.log"
    log.write_text(text)
    return diagnose([log], [FALLEN, SHAKEN, ENDED], warnings=warnings)


def cause_of(folder: Path, text: str) -> str | None:
    found = find(folder, text)
    return found.cause if found else None


@pytest.fixture(params=WARNINGS)
def warning(request: pytest.FixtureRequest) -> str:
    return WARNINGS[request.param] + "\n" + "loading\n" * 9


def test_a_warning_that_the_program_survived_is_no_cause(tmp_path: Path, warning: str) -> None:
    text = warning.format("the sky fell")

    assert cause_of(tmp_path, text + UNCAUGHT) == "a process failed with ZeroDivisionError"
    assert cause_of(tmp_path, f"{text}the sky fell\n{UNCAUGHT}") == "the sky"
    assert cause_of(tmp_path, text) == "the sky"


def test_a_sign_of_a_failed_process_outranks_an_earlier_warning(tmp_path: Path, warning: str) -> None:
    text = warning.format("the sky fell")

    assert cause_of(tmp_path, f"{text}it shook\n") == "a shock"
    assert cause_of(tmp_path, f"it ended\n{text}") == "the sky"
    assert cause_of(tmp_path, f"{text}it ended\n") == "the sky"


def test_a_warning_about_another_process_outranks_only_other_warnings_and_reports(tmp_path: Path, warning: str) -> None:
    text = warning.format("it shook")

    assert cause_of(tmp_path, f"it ended\n{text}") == "a shock"
    assert cause_of(tmp_path, f"WARNING: the sky fell\n{text}") == "a shock"
    assert cause_of(tmp_path, f"{text}{UNCAUGHT}") == "a process failed with ZeroDivisionError"
    assert cause_of(tmp_path, f"{text}Watchdog caught collective operation timeout: x\n") == (
        "a rank waited in vain for the other ranks"
    )


def test_a_warning_is_no_cause_of_a_run_that_may_have_succeeded(tmp_path: Path, warning: str) -> None:
    for text in ("the sky fell", "it shook"):
        assert find(tmp_path, warning.format(text), warnings=False) is None
        assert find(tmp_path, f"{text}\n{warning.format(text)}", warnings=False) is not None
        ended = find(tmp_path, f"{warning.format(text)}it ended\n", warnings=False)
        assert ended is not None
        assert ended.cause == "unknown: an end"


def test_a_warning_is_recognised_wherever_a_block_of_the_log_ends(
    tmp_path: Path, warning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_blocks, "BLOCK_BYTES", 1000)
    for before in (*range(0, 2000, 111), *range(900, 1000, 13)):  # blocks end at 1000 and 2000
        text = "x" * before + "\n" + warning.format("the sky fell") + "loading\n" * 600
        assert cause_of(tmp_path, text + UNCAUGHT) == "a process failed with ZeroDivisionError"


def test_a_warning_of_nccl_or_about_cuda_is_an_error(tmp_path: Path) -> None:
    for before in ("n1:1:2 [0] NCCL WARN", "/opt/a.py:10: UserWarning: CUDA initialization:"):
        assert cause_of(tmp_path, f"{before} the sky fell\n{UNCAUGHT}") == "the sky"


@pytest.mark.parametrize("label", ["", "[rank3]: "])
def test_the_evidence_of_a_long_line_begins_with_its_label_and_level(tmp_path: Path, label: str) -> None:
    found = find(tmp_path, f"one\n{label}WARNING: Retrying ({LONG}): the sky fell, and more\n")

    assert found is not None
    assert found.evidence.startswith(f"{label}WARNING: Retrying (Retry(total=4, ")
    assert found.evidence.endswith(" ... the sky fell, and more")
    assert (found.line, found.rank) == (2, 3 if label else None)


IMPORT = """\
Traceback (most recent call last):
  File "/opt/te/__init__.py", line 10, in <module>
    import flash_attn_3
ModuleNotFoundError: No module named 'flash_attn_3'
"""
MISSING = "a Python module is missing in the job's environment"
OOM = UNCAUGHT.replace(
    "ZeroDivisionError: 1/0", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.16 GiB."
)
CHAIN = "\nDuring handling of the above exception, another exception occurred:\n\n"


@pytest.mark.parametrize("between", ["", "using v2\n", "using v2\n" * 500])
def test_an_optional_module_does_not_hide_the_known_error_that_ends_the_process_later(
    tmp_path: Path, between: str
) -> None:
    found = find(tmp_path, IMPORT + between + OOM)

    assert found is not None
    assert found.cause == "the accelerator is out of memory"
    assert found.evidence.startswith("torch.OutOfMemoryError: ")


@pytest.mark.parametrize(
    "end",
    [
        "using v2\n",
        UNCAUGHT.replace("ZeroDivisionError: 1/0", "CalledProcessError: exit status 1"),  # of the launcher
        CHAIN + OOM,
        "".join(f"3: {line}" for line in OOM.splitlines(keepends=True)),
    ],
    ids=["no exception", "launcher", "chain", "another rank"],
)
def test_a_missing_module_is_the_cause_if_no_known_error_of_the_process_follows(tmp_path: Path, end: str) -> None:
    assert cause_of(tmp_path, IMPORT + end) == MISSING
