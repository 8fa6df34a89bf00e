"""``llmb report`` without extensions: selection of runs, JUnit XML and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from parts.command_line import Llmb, command_line
from parts.recorded_runs import PUBLISHED_S, record_runs
from parts.repository import ROOT

from llmb import Failure, PluginError, PluginRegistry, find_run, report
from llmb.reports.report import Cleaner

STEADY = [PUBLISHED_S] * 50
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def suite(text: str) -> ElementTree.Element:
    [found] = ElementTree.fromstring(text.encode())
    return found


def test_junit_has_one_case_per_set_of_repeats(llmb: Llmb, tmp_path: Path) -> None:
    passed = record_runs([STEADY, [1.01 * PUBLISHED_S] * 50])
    failed = record_runs([[1.2 * PUBLISHED_S] * 50], workload={"gpus": 128})
    failure = Failure(
        cause="out of GPU memory", evidence="rank 3: CUDA error <2>\x00\x1b[31m", remedy="use a larger GPU"
    )
    ended = record_runs([STEADY[:10]], state="failed", failure=failure, workload={"gpus": 256})
    file = tmp_path / "junit.xml"
    answer = llmb("report", *passed, *failed, *ended, "--junit", file)

    assert (answer.status, answer.out, answer.err) == (0, "", f"llmb: wrote {file}\n")
    found = suite(file.read_text())
    counts = {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    assert found.attrib.items() >= (counts | {"name": "maxtext/llama2-70b", "timestamp": "2026-11-01T09:00:00"}).items()
    assert float(found.attrib["time"]) > 100 * PUBLISHED_S
    first, second, third = found
    assert (first.attrib["classname"], first.attrib["name"]) == ("maxtext/llama2-70b.h100.bf16", "64 GPUs")
    properties = {each.attrib["name"]: each.attrib["value"] for each in first.iter("property")}
    assert list(properties) == ["run_ids", "step_time_s", "published_step_time_s", "ratio", "interval", "verdict"]
    assert (properties["run_ids"], properties["verdict"]) == (",".join(passed), "pass")
    [slower] = second.iter("failure")
    assert slower.attrib["type"] == "slower"
    assert "the limit is 1.05" in slower.attrib["message"]
    [error] = third.iter("error")
    assert (error.attrib["type"], error.text) == ("out of GPU memory", "rank 3: CUDA error <2>")


def test_the_time_of_a_junit_case_includes_the_steps_behind_a_mean(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    line = " [2026-01-20 10:00:00] iteration {0}/ 100 | elapsed time per iteration (ms): 5200.0 | lm loss: 9.0 |\n"
    log.write_text("".join(map(line.format, range(10, 101, 10))))
    point = ("--recipe", "megatron_bridge/llama3.1-8b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "8")
    [run_id] = llmb("grade", log, *point, "--save", "--json").json["runs"]
    [case] = suite(llmb("report", run_id, "--junit", "-").out)
    assert float(case.attrib["time"]) == pytest.approx(100 * 5.2)


def test_the_time_of_a_junit_case_is_a_number_if_the_log_has_impossible_times(llmb: Llmb) -> None:
    [run_id] = record_runs([[math.nan, math.inf, 1e300, *STEADY]])
    [case] = suite(llmb("report", run_id, "--junit", "-").out)
    assert float(case.attrib["time"]) == pytest.approx(sum(STEADY))


def test_cases_of_the_same_configuration_have_different_names(llmb: Llmb) -> None:
    runs = [
        *record_runs([STEADY]),
        *record_runs([[1.2 * PUBLISHED_S] * 50]),
        *record_runs([STEADY], workload={"gpus": 128}),
    ]
    found = suite(llmb("report", *runs, "--junit", "-").out)
    first, second = (run_id.partition("-")[0] for run_id in runs[:2])
    names = [case.attrib["name"] for case in found.iter("testcase")]
    assert names == [f"64 GPUs ({first})", f"64 GPUs ({second})", "128 GPUs"]


def test_a_set_without_a_verdict_is_skipped_with_the_reason(llmb: Llmb) -> None:
    [run_id] = record_runs([[1.045 * PUBLISHED_S] * 50])
    found = suite(llmb("report", run_id, "--junit", "-").out)
    [skipped] = found.iter("skipped")
    assert "more repeat" in skipped.attrib["message"]


def test_repeats_of_which_none_counts_have_a_step_time(llmb: Llmb) -> None:
    runs = record_runs([STEADY, [1.02 * PUBLISHED_S] * 50])
    for run_id in runs:
        file = Path(find_run(run_id).directory) / "result.json"
        objection = {"verdict": "undecided", "interval": None, "reason": "env.A differs from the recipe"}
        file.write_text(json.dumps(json.loads(file.read_text()) | objection))
    [case] = suite(llmb("report", runs[0], "--junit", "-").out)
    properties = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
    assert float(properties["step_time_s"]) == pytest.approx(1.01 * PUBLISHED_S)
    assert (properties["ratio"], properties["verdict"]) == ("", "undecided")
    [found] = report(runs[0]).sets
    assert found.left_out == ()


def test_csv_has_one_row_per_run_with_the_repeats(llmb: Llmb) -> None:
    runs = record_runs([STEADY, STEADY], provenance={"host": "n1"})
    answer = llmb("report", runs[0], "--csv", "-")
    assert "\r\n" in answer.out
    rows = list(csv.DictReader(io.StringIO(answer.out, newline="")))
    assert [row["run_id"] for row in rows] == runs
    row = rows[0]
    assert list(row)[:8] == ["run_id", "created", "recipe", "release", "framework", "gpu_type", "dtype", "gpus"]
    assert (row["framework"], row["release"], row["repeats"], row["window"]) == ("maxtext", "24.11", "2", "50:50")
    assert float(row["mfu"]) < 1
    assert (row["variant"], row["step_time_std_s"]) == ("", "")
    [failed] = record_runs([[]], state="failed", reason="=cmd()")
    [row] = csv.DictReader(io.StringIO(llmb("report", failed, "--csv", "-").out, newline=""))
    assert row["reason"] == "'=cmd()"


def test_csv_has_no_metrics_of_a_part_of_the_window(llmb: Llmb) -> None:
    [run_id] = record_runs([STEADY])
    file = Path(find_run(run_id).directory) / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"window_complete": False}))
    for command in (("report", run_id, "--csv", "-"), ("runs", "--csv")):
        [row] = csv.DictReader(io.StringIO(llmb(*command).out))
        assert (row["run_id"], row["published_step_time_s"]) == (run_id, str(PUBLISHED_S))
        empty = ("step_time_s", "step_time_ratio", "tokens_per_s", "mfu", "days_per_1t_tokens", "window")
        assert [row[name] for name in empty] == [""] * len(empty)


def test_a_report_needs_an_output_and_a_run(llmb: Llmb) -> None:
    [run_id] = record_runs([STEADY])
    for arguments, message in (
        ((run_id,), "no output is named; add -o FILE.html"),
        (("nothing", "--csv", "-"), "no run 'nothing'"),
        ((run_id, "--csv", "/nothing/x.csv"), "cannot write /nothing/x.csv: No such file"),
        ((run_id, "-o", "x.odt"), "no installed extension writes reports with the suffix '.odt'"),
        ((run_id, "--csv", "-", "--junit", "-"), "two outputs have the same name"),
    ):
        answer = llmb("report", *arguments)
        assert (answer.status, answer.out) == (2, "")
        assert message in answer.err


def test_html_names_the_package_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = PluginRegistry()
    monkeypatch.setattr(registry, "installed", [])
    with pytest.raises(PluginError, match="HTML reports need the package llmb-report: ") as error:
        registry.report_renderer(".html")
    package, folder = re.findall(r"`pip install (.*?)`", str(error.value))
    assert package == "llmb-report"
    assert (ROOT / folder / "pyproject.toml").is_file()


def test_runs_may_be_filters(llmb: Llmb) -> None:
    small, _large = record_runs([STEADY]), record_runs([STEADY], workload={"gpus": 128})
    rows = csv.DictReader(io.StringIO(llmb("report", "{gpus=64}", "--csv", "-").out))
    assert [row["run_id"] for row in rows] == small


def test_no_report_contains_secrets_or_control_characters(llmb: Llmb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    failure = Failure(cause="x", evidence=f"token {TOKEN} and 0123456789abcdef\x1b]0;title\x07\u202e\x85end", remedy="")
    [run_id] = record_runs([STEADY[:9]], state="failed", failure=failure, env={"NOTE": "\u200fx"})
    for option in ("--csv", "--junit"):
        text = llmb("report", run_id, option, "-").out
        assert run_id in text
        assert not any(each in text for each in (TOKEN, "0123456789abcdef", "\x1b", "\x07", "\u202e", "\x85", "\u200f"))
    assert Cleaner([])({"a": [f"x {TOKEN}\x00", 1]}) == {"a": ["x *****************************", 1]}
