"""Extensions: a broken one is named and left out, since the user did not name it, and breaks no run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from parts.recorded_runs import record_runs

import llmb


def hook(signature: str, body: str) -> str:
    return f"@hookimpl\ndef {signature}: {body}"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ({"after": "1 / 0"}, "import of llmb_odd:Plugin failed: ZeroDivisionError: division by zero"),
        ({"after": "del Plugin"}, "import of llmb_odd:Plugin failed: AttributeError: module 'llmb_odd' has no"),
        (
            {"members": hook("accelerator(self)", "return ()")},
            f"does not match the hooks of llmb {llmb.VERSION}: accelerator() is not a hook of extensions "
            "(did you mean 'accelerators'?)",
        ),
        (
            {"members": "del diagnose"},
            f"does not match the hooks of llmb {llmb.VERSION}: it implements no hook "
            "(accelerators(), diagnose(), report())",
        ),
        (
            {"members": hook("accelerators(self)", "return 1 / 0")},
            "accelerators() failed: ZeroDivisionError: division by zero",
        ),
        (
            {"members": hook("accelerators(self)", "yield 1 / 0")},
            "accelerators() failed: ZeroDivisionError: division by zero",
        ),
        ({"members": hook("accelerators(self)", "sys.exit(3)")}, "accelerators() failed: SystemExit: 3"),
        (
            {"members": hook("accelerators(self)", "raise SpecError('is odd')")},
            "accelerators() failed: SpecError: is odd",
        ),
        (
            {"members": hook("accelerators(self)", "return ['npu9']")},
            "accelerators() returned list with str in it; expected Iterable[Accelerator]",
        ),
        (
            {"members": hook("accelerators(self)", "pass")},
            "accelerators() returned None; expected Iterable[Accelerator]",
        ),
    ],
)
def test_a_broken_extension_is_one_warning_and_the_run_continues(
    plugins: Any, run_llmb: Any, spec: Any, code: dict[str, str], message: str
) -> None:
    plugins.install("extension", **code)
    spec.usual()
    line = f"llmb: left out: extension plugin 'odd' (llmb-odd 1.2.3): {message}"
    for command in (["validate"], ["run", "--dry-run"]):
        done = run_llmb(*command, spec.file)
        assert (done.returncode, done.stderr.count("\n")) == (0, 1)
        assert done.stderr.startswith(line)
    assert run_llmb.json("run", spec.file, "--dry-run")["runs"]


def test_the_warning_is_one_plain_line_in_a_process_too(plugins: Any, run_llmb: Any, spec: Any) -> None:
    plugins.install("extension", after="1 / 0")
    done = run_llmb.process("run", spec.usual().file, "--dry-run", "--json")
    assert (done.returncode, len(json.loads(done.stdout)["runs"])) == (0, 1)
    assert done.stderr == (
        "llmb: left out: extension plugin 'odd' (llmb-odd 1.2.3): "
        "import of llmb_odd:Plugin failed: ZeroDivisionError: division by zero (__init__.py, line 18)\n"
    )


def test_a_duplicate_extension_is_a_warning(plugins: Any, run_llmb: Any, spec: Any) -> None:
    plugins.install("extension")
    plugins.install("extension", distribution="odd-two")
    assert run_llmb("validate", spec.usual().file).stderr == (
        "llmb: left out: extension plugin 'odd' is provided by llmb-odd 1.2.3 and odd-two 1.2.3; "
        "uninstall all except one\n"
    )


def test_a_spec_can_use_an_accelerator_of_an_extension(plugins: Any, run_llmb: Any) -> None:
    plugins.install("framework")
    file = plugins.spec(workload={"gpu_type": "npu9"})
    done = run_llmb("validate", file)
    assert done.returncode == 2
    assert "workload.gpu_type: " in done.stderr
    accelerator = "Accelerator(name='npu9', gpus_per_node=4, dtypes=('bf16',), peak_flops={'bf16': 1e15})"
    plugins.install("extension", hook("accelerators(self)", f"yield {accelerator}"), name="extra")
    [run] = run_llmb.json("run", file, "--dry-run")["runs"]
    assert run["gpu_type"] == "npu9"
    assert [each for each in run_llmb.json("plugins")["plugins"] if each["name"] == "extra"] == [
        {
            "name": "extra",
            "kind": "extension",
            "distribution": "llmb-extra",
            "version": "1.2.3",
            "hooks": ["accelerators", "diagnose"],
            "error": None,
        }
    ]


def test_a_cause_of_an_extension_is_found_in_a_parsed_log(plugins: Any, run_llmb: Any, tmp_path: Path) -> None:
    signature = "Signature(needle='npu on fire', cause='a fire', remedy='water')"
    plugins.install("extension", hook("diagnose(self)", f"return [{signature}]"))
    log = tmp_path / "run.log"
    log.write_text("starting\nE: npu on fire\n")
    failure = run_llmb.json("parse", "--framework", "maxtext", log, status=1)["failure"]
    assert (failure["cause"], failure["line"]) == ("a fire", 2)


@pytest.mark.parametrize(
    "code", [{"after": "1 / 0"}, {"members": hook("parse_log(self)", "raise TargetError('no host')")}]
)
def test_a_broken_scheduler_breaks_no_parsing_of_logs(
    plugins: Any, run_llmb: Any, tmp_path: Path, code: dict[str, str]
) -> None:
    plugins.install("scheduler", **code)
    log = tmp_path / "run.log"
    log.write_text("*** JOB 12 ON node1 CANCELLED AT 2026-11-21T06:57:14 DUE TO TIME LIMIT ***\n")
    done = run_llmb("parse", "--framework", "maxtext", log, "--json")
    assert json.loads(done.stdout)["failure"]["cause"] == "the job reached its time limit"
    assert "left out: " in done.stderr


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 / 0", "the renderer of .txt failed: ZeroDivisionError: division by zero"),
        ("return b'no text'", "the renderer of .txt returned bytes; expected str"),
    ],
)
def test_a_broken_renderer_is_one_line_and_writes_no_file(
    plugins: Any, run_llmb: Any, tmp_path: Path, body: str, message: str
) -> None:
    [run_id] = record_runs([[1.0] * 9])
    plugins.install("extension", hook("report(self)", "return {'.txt': render}"), after=f"def render(report): {body}")
    done = run_llmb("report", run_id, "-o", tmp_path / "x.txt", "--csv", tmp_path / "x.csv")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"llmb: extension plugin 'odd' (llmb-odd 1.2.3): {message}")
    assert [*tmp_path.glob("x.*")] == []


@pytest.mark.parametrize("suffix", ["md", ".MD", ".tar.gz", "."])
def test_a_suffix_that_no_file_can_have_is_an_error(plugins: Any, run_llmb: Any, tmp_path: Path, suffix: str) -> None:
    [run_id] = record_runs([[1.0] * 9])
    plugins.install("extension", hook("report(self)", f"return {{{suffix!r}: str}}"))
    done = run_llmb("report", run_id, "-o", tmp_path / f"x{suffix}")
    assert done.returncode == 2
    assert f"report() returned the suffix {suffix!r}; expected a dot and small letters, such as '.md'" in done.stderr


def test_a_format_of_two_extensions_is_an_error_that_names_both(plugins: Any, run_llmb: Any, tmp_path: Path) -> None:
    [run_id] = record_runs([[1.0] * 9])
    code = hook("report(self)", "return {'.txt': lambda report: report.runs[0].run_id}")
    plugins.install("extension", code)
    assert run_llmb("report", run_id, "-o", tmp_path / "x.txt").returncode == 0
    assert (tmp_path / "x.txt").read_text() == run_id
    plugins.install("extension", code, name="extra")
    done = run_llmb("report", run_id, "-o", tmp_path / "x.txt")
    assert done.returncode == 2
    assert ".txt reports are provided by llmb-extra 1.2.3 and llmb-odd 1.2.3; uninstall all except one" in done.stderr


@pytest.mark.parametrize("kind", ["framework", "scheduler", "extension"])
def test_every_kind_of_plugin_may_add_causes_of_failure(plugins: Any, run_llmb: Any, tmp_path: Path, kind: str) -> None:
    signature = "Signature(needle='npu on fire', cause='a fire', remedy='water', pattern='npu on fire at (?P<host>.+)')"
    plugins.install(kind, hook("diagnose(self)", f"yield {signature}"))
    log = tmp_path / "run.log"
    log.write_text("npu on fire\n3: npu on fire at node7\n")
    framework = "odd" if kind == "framework" else "maxtext"
    failure = run_llmb.json("parse", "--framework", framework, log, status=1)["failure"]
    assert (failure["cause"], failure["line"], failure["rank"], failure["host"]) == ("a fire", 2, 3, "node7")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("1 / 0", "diagnose() failed: ZeroDivisionError: division by zero"),
        ("return ['npu on fire']", "diagnose() returned list with str in it; expected Iterable[Signature]"),
        (
            "yield Signature(needle='a', cause='b', remedy='', detail='(')",
            "diagnose() failed: ValueError: invalid Signature.detail '('",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["framework", "scheduler"])
def test_broken_signatures_are_one_warning_and_the_other_causes_are_found(
    plugins: Any, run_llmb: Any, tmp_path: Path, kind: str, body: str, message: str
) -> None:
    plugins.install(kind, hook("diagnose(self)", body))
    log = tmp_path / "run.log"
    log.write_text("OSError: [Errno 28] No space left on device\n")
    framework = "odd" if kind == "framework" else "maxtext"
    done = run_llmb("parse", "--framework", framework, log, "--json")
    assert json.loads(done.stdout)["failure"]["cause"] == "a disk is full"
    assert done.stderr.count(f"left out: {kind} plugin 'odd' (llmb-odd 1.2.3): {message}") == 1
