"""Extensions: nobody named them, so one that does not work is told, and hurts no run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import llmb


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("1 / 0", "llmb-extra 1.2.3 is broken: llmb_extra:Plugin fails with ZeroDivisionError: division by zero"),
        ("", "llmb-extra 1.2.3 is broken: llmb_extra:Plugin fails with AttributeError: module 'llmb_extra' has no "
        "attribute 'Plugin'"),
        (
            "from llmb import hookimpl\nclass Plugin:\n    @hookimpl\n    def accelerator(self): return ()",
            f"llmb-extra 1.2.3 does not fit llmb {llmb.VERSION}: accelerator() is no hook of an extension "
            "(did you mean 'accelerators'?)",
        ),
        (
            "from llmb import hookimpl\nclass Plugin:\n    @hookimpl\n    def accelerators(self): return 1 / 0",
            "llmb-extra 1.2.3: ZeroDivisionError: division by zero",
        ),
        (
            "from llmb import hookimpl\nclass Plugin:\n    @hookimpl\n    def accelerators(self): return ['npu9']",
            "llmb-extra 1.2.3: TypeError: 'npu9' is no Accelerator",
        ),
        (
            "from llmb import hookimpl\nclass Plugin:\n    @hookimpl\n    def accelerators(self): pass",
            "llmb-extra 1.2.3: accelerators() returned nothing",
        ),
    ],
)  # fmt: skip
def test_a_broken_extension_is_one_warning_and_the_run_goes_on(
    site: Any, run_llmb: Any, spec: Any, code: str, told: str
) -> None:
    site.extension(code)
    spec.usual()
    for command in (["validate"], ["run", "--dry-run"]):
        done = run_llmb(*command, spec.file)
        assert (done.returncode, done.stderr) == (0, f"llmb: left out: {told}\n")
    assert run_llmb.json("run", spec.file, "--dry-run")["runs"]


def test_a_broken_extension_is_one_plain_line_for_the_user_too(site: Any, run_llmb: Any, spec: Any) -> None:
    site.extension("1 / 0")
    done = run_llmb.process("run", spec.usual().file, "--dry-run", "--json")
    assert (done.returncode, len(json.loads(done.stdout)["runs"])) == (0, 1)
    assert done.stderr == (
        "llmb: left out: llmb-extra 1.2.3 is broken: llmb_extra:Plugin fails with ZeroDivisionError: division by zero\n"
    )


def test_a_duplicate_extension_is_a_warning(site: Any, run_llmb: Any, spec: Any) -> None:
    site.extension("1 / 0")
    site.extension("1 / 0", distribution="extra-two")
    assert run_llmb("validate", spec.usual().file).stderr == (
        "llmb: left out: extension 'extra' is brought by extra-two 1.2.3 and llmb-extra 1.2.3; uninstall all but one\n"
    )


def test_a_cause_that_an_extension_knows_is_told_of_a_log_that_is_only_parsed(
    site: Any, run_llmb: Any, tmp_path: Path
) -> None:
    site.extension(
        "from llmb import Signature, hookimpl\nclass Plugin:\n    @hookimpl\n    def diagnose(self):\n"
        "        return [Signature(needle='npu on fire', cause='a fire', remedy='water')]\n"
    )
    log = tmp_path / "run.log"
    log.write_text("starting\nE: npu on fire\n")
    failure = run_llmb.json("parse", "--framework", "maxtext", log, status=1)["failure"]
    assert (failure["cause"], failure["line"]) == ("a fire", 2)


def test_a_scheduler_that_does_not_work_hurts_no_log_that_is_only_parsed(
    site: Any, run_llmb: Any, tmp_path: Path
) -> None:
    site.install("llmb-extra", files={"extra.py": "1 / 0"}, entry_points={"llmb.schedulers": {"extra": "extra:Plugin"}})
    log = tmp_path / "run.log"
    log.write_text("*** JOB 12 ON node1 CANCELLED AT 2026-11-21T06:57:14 DUE TO TIME LIMIT ***\n")
    done = run_llmb("parse", "--framework", "maxtext", log, "--json")
    assert json.loads(done.stdout)["failure"]["cause"] == "the job's time limit came"
    assert "llmb: left out: llmb-extra 1.2.3 is broken" in done.stderr
