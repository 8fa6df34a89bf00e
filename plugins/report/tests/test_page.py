"""The content of the HTML report, and that nothing in it is active."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from parts.command_line import Llmb, command_line
from parts.recorded_runs import PUBLISHED_S, record_runs

from llmb import Failure, ReportedRun, ReportedSet, find_run

from .conftest import step_times, write_page

pytestmark = pytest.mark.xdist_group("report")  # matplotlib takes more than a second to import
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"
VOID = {"meta", "wbr", "br", "use", "path", "rect"}


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


class Elements(HTMLParser):
    """The elements of a page: each name with its attributes, and the text of headings."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        assert self._open == [], "an element is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in {*self._open}:
            self.texts[tag][-1] += data

    def names(self) -> set[str]:
        return {name for name, _ in self.found}

    def ids(self) -> list[str]:
        return [value for _, attributes in self.found if (value := attributes.get("id"))]


def test_a_report_has_every_section_with_a_word_for_each_verdict(page: str) -> None:
    elements = Elements(page)
    assert elements.texts["h2"] == [*("Summary", "Verdicts", "Step time", "Speed", "Scaling", "Failures", "Provenance")]
    words = [text for text in elements.texts["span"] if text in ("pass", "fail", "undecided", "failed")]
    assert words == ["pass", "undecided", "fail", "failed", "pass", "failed"]
    assert elements.texts["h1"] == ["maxtext/llama2-70b on h100, bf16, fp8 "]


def test_every_plot_has_a_title_a_description_axes_and_its_table(page: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert len(figures) == 1 + 5 + 3 + 2
    for figure in figures:
        svg = figure[figure.index("<svg") : figure.index("</svg>")]
        assert re.search(r'role="img" aria-labelledby="(\S+-title) (\S+-desc)"><title id="\1">.+<desc id="\2">.+', svg)
        assert svg.count("<text") >= 4
        assert figure.count("<table") == 1
        assert "<h3>" in figure
    for axis in ("step", "step time (s)", "tokens/s", "MFU (%)", "TFLOP/s per GPU", "GPUs", "efficiency (%)"):
        assert f">{axis}</text>" in page
    assert "step 1: 48.99 s</text>" in page


def test_a_report_is_self_contained_and_runs_nothing(page: str) -> None:
    elements = Elements(page)
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert elements.names().isdisjoint({"script", "link", "img", "iframe", "object", "image", "foreignObject", "a"})
    assert not [name for _, attributes in elements.found for name in attributes if name.startswith("on")]
    assert re.findall(r"(?:https?:)?//[^ <]+|@import|url\((?!#)", page) == []
    assert len(set(elements.ids())) == len(elements.ids())
    assert {"xlink:href"} >= {name for _, attributes in elements.found for name in attributes if "href" in name}


def test_markup_control_characters_and_tokens_of_a_log_do_not_reach_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    hostile = f"<script>alert(1)</script>\x1b]0;x\x07 \x00\u202e</style><img src=x onerror=y> {TOKEN} 0123456789abcdef"
    failure = Failure(cause=hostile, evidence=hostile, line=1, remedy=hostile)
    runs = record_runs(
        [step_times(1.0)], state="failed", failure=failure, env={"NOTE": "<b>$x$</b>"}, provenance={"driver": hostile}
    )
    page = write_page(*runs)
    elements = Elements(page)
    assert elements.names().isdisjoint({"script", "img"})
    assert "<b>$x$" not in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not any(each in page for each in (TOKEN, "0123456789abcdef"))
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page) == []


def test_text_is_never_a_formula_of_the_plot_library() -> None:
    runs = record_runs([step_times(1.0)], provenance={"sweep": {"env.A": r"$\frac{1}{2}$ <i>"}})
    assert "env.A=$\\frac{1}{2}$ &lt;i&gt;" in write_page(*runs)


def test_equal_runs_give_equal_bytes(campaign: list[str], page: str) -> None:
    assert write_page(*campaign) == page


def test_many_runs_are_a_band_and_many_steps_are_buckets() -> None:
    page = write_page(*record_runs([step_times(1.0, 600, seed=seed) for seed in range(13)]))
    assert "median of 13 runs, 5 to 95 % as a band" in page
    assert len(page) < 120_000
    assert "median of neighbouring steps" in write_page(*record_runs([step_times(1.0, 501)]))
    assert "median of neighbouring steps" not in write_page(*record_runs([step_times(1.0, 200)]))


def test_one_run_takes_at_most_120_kb() -> None:
    page = write_page(*record_runs([step_times(1.0, 1000)]))
    assert len(page.encode()) <= 120_000
    assert "Step time of 1 run over 1000 steps" in page  # counts are written as everywhere in llmb


def test_a_run_without_steps_or_verdict_still_has_a_report() -> None:
    page = write_page(*record_runs([[]], state="lost"))
    assert "not completed" in page
    assert "<svg" not in page


def test_a_run_that_has_not_ended_did_not_complete() -> None:
    assert "Every run completed." in write_page(*record_runs([step_times(1.0)]))
    page = write_page(*record_runs([step_times(1.0)], state="running"))
    assert "Every run completed." not in page
    assert "No run failed; 1 run has not ended." in page


def test_the_axis_of_a_single_step_has_no_fractions() -> None:
    [figure] = re.findall(r'<figure id="steps-1">.*?</figure>', write_page(*record_runs([[PUBLISHED_S]])), re.DOTALL)
    labels = re.findall(r">([\d.]+)</text>", figure)
    assert "1" in labels
    assert "0.8" not in labels


def test_scaling_compares_only_runs_of_the_same_model() -> None:
    """The published configurations below 576 GPUs are proxies, each with another number of layers."""
    published_s = {32: 8.85, 96: 8.75, 576: 17.20, 1152: 17.52}
    recipe: dict[str, Any] = {"recipe": "nemo_launcher/llama3.1-405b"}
    runs = [record_runs([[time_s] * 20], workload=recipe | {"gpus": gpus})[0] for gpus, time_s in published_s.items()]
    page = write_page(*runs)
    [figure] = re.findall(r'<figure id="scaling-efficiency-\d+">.*?</figure>', page, re.DOTALL)
    assert "Efficiency, model.layers=126" in figure
    assert "Tokens/s of one GPU, relative to the smallest size." in figure
    assert '<h2 id="scaling">' in page
    assert re.findall(r"<tr><td>(\d+)</td><td>([\d.]+)</td>", figure) == [("576", "100.0"), ("1152", "98.17")]
    assert '<h2 id="scaling">' not in write_page(*runs[:2])


def test_scaling_leaves_out_an_impossible_speed_and_names_means() -> None:
    sizes = {64: (1.0, 1.02, 0.3), 128: (1.0,)}
    runs = [
        record_runs([[factor * PUBLISHED_S] * 20], workload={"gpus": gpus})[0]
        for gpus, factors in sizes.items()
        for factor in factors
    ]
    [figure] = re.findall(r'<figure id="scaling-efficiency-\d+">.*?</figure>', write_page(*runs), re.DOTALL)
    assert re.findall(r"<tr><td>(\d+)</td><td>([\d.]+)</td>", figure) == [("64", "100.0"), ("128", "101.0")]
    assert "Mean of several sets of repeats, whose settings may differ: 2 at 64 GPUs." in figure


def test_the_efficiency_is_the_ratio_of_the_step_times_beside_it() -> None:
    """A set of three repeats counts as much as a set of one run."""
    sizes = {64: ((1.0, 1.0, 1.0), (1.4,)), 128: ((1.2,),)}
    runs = [
        record_runs([[factor * PUBLISHED_S] * 20 for factor in factors], workload={"gpus": gpus})[0]
        for gpus, sets in sizes.items()
        for factors in sets
    ]
    page = write_page(*runs)
    times, efficiencies = (
        re.findall(r"<tr><td>\d+</td><td>([\d.]+)</td>", figure)
        for figure in re.findall(r'<figure id="scaling-\w+-\d+">.*?</figure>', page, re.DOTALL)
    )
    assert times == ["8.399", "8.399"]
    assert efficiencies == ["100.0", "100.0"]


def test_the_published_efficiency_counts_each_set_once() -> None:
    from llmb_report.scaling_plots import find_scalings  # imports Matplotlib

    def reported(gpus: int, published_s: float, run_ids: str) -> ReportedSet:
        metrics = {
            "tokens_per_s_per_gpu": 100.0,
            "step_time_s": 6.0,
            "baseline": {"tokens_per_s": 600 * gpus / published_s},
        }
        runs = [
            ReportedRun(result={"run_id": run_id, "window_complete": True, "metrics": metrics}) for run_id in run_ids
        ]
        fields: dict[str, Any] = dict.fromkeys(("step_time_ratio", "interval", "tolerance", "variant", "verdict"))
        fields |= {"recipe": "a/b", "gpu_type": "h100", "dtype": "bf16", "reason": "", "step_time_s": 6.0}
        return ReportedSet(**fields, gpus=gpus, runs=runs, left_out=(), published_step_time_s=published_s)

    [scaling] = find_scalings([reported(8, 4.0, "abc"), reported(8, 8.0, "d"), reported(16, 6.0, "e")])
    assert [size.published_step_time_s for size in scaling.sizes] == [6, 6]
    assert [size.published_tokens_per_s_per_gpu for size in scaling.sizes] == [100, 100]


def test_a_name_in_another_language_is_no_warning() -> None:
    """The fonts of the plots library lack the characters. Warnings are errors in these tests."""
    [run_id] = record_runs([step_times(1.0)], provenance={"sweep": {"env.MODE": "\N{CJK UNIFIED IDEOGRAPH-672C}"}})
    assert "env.MODE=\N{CJK UNIFIED IDEOGRAPH-672C}</text>" in write_page(run_id)


def test_the_description_of_a_speed_has_the_range_of_the_runs() -> None:
    """The published MFU of 52.59 % is outside the range."""
    runs = [record_runs([[factor * PUBLISHED_S] * 20])[0] for factor in (1.1, 1.2)]
    assert "Model FLOPs utilisation of each run of 2 sets of repeats: 43.84 to 47.82 %." in write_page(*runs)


def test_the_window_of_a_plot_is_that_of_the_runs_that_completed_it() -> None:
    first, second = record_runs([step_times(1.0)]), record_runs([step_times(1.0)])
    file = Path(find_run(first[0]).directory) / "result.json"
    result = json.loads(file.read_text())
    result["window"] |= {"first": 4, "last": 4}
    file.write_text(json.dumps(result | {"window_complete": False}))
    page = write_page(*first, *second)
    assert "window, step 50" in page
    assert "window, step 4<" not in page


def test_sets_of_one_configuration_are_counted_once() -> None:
    runs = [*record_runs([step_times(1.0)]), *record_runs([step_times(1.0)])]
    assert "<dd>2 in 1 configuration</dd>" in write_page(*runs)
    assert "published step time of 2 sets of repeats." in write_page(*runs)


@pytest.mark.parametrize(
    ("other", "key", "values"),
    [
        ({"model": {"layers": 40}}, "model.layers", (80, 40)),
        ({"parallelism": {"global_batch_size": 256}}, "parallelism.global_batch_size", (128, 256)),
    ],
)
def test_steps_of_another_size_have_a_plot_of_their_own(other: dict[str, Any], key: str, values: tuple[int]) -> None:
    runs = [record_runs([step_times(1.0)], **tables)[0] for tables in ({}, other, {"env": {"A": "1"}})]
    plots = re.findall(r"<title [^>]*>Step time of (.*?)</title>", write_page(*runs))
    assert sorted(plots) == sorted(f"64 GPUs, {key}={value}" for value in values)


def test_partial_metrics_do_not_count_in_the_efficiency() -> None:
    from llmb_report.scaling_plots import find_scalings  # imports Matplotlib

    def run(run_id: str, rate: float, *, complete: bool) -> ReportedRun:
        metrics = {"tokens_per_s_per_gpu": rate, "step_time_s": 7.0}
        result = {"run_id": run_id, "window_complete": complete, "metrics": metrics}
        return ReportedRun(result=result)

    def reported(gpus: int, *runs: ReportedRun) -> ReportedSet:
        fields: dict[str, Any] = dict.fromkeys(("published_step_time_s", "step_time_ratio", "interval", "tolerance"))
        fields |= {"recipe": "a/b", "gpu_type": "h100", "dtype": "bf16", "variant": None, "verdict": None, "reason": ""}
        return ReportedSet(**fields, gpus=gpus, runs=runs, left_out=(), step_time_s=7.0)

    sets = [
        reported(8, run("a", 100, complete=True), run("b", 10, complete=False)),
        reported(16, run("c", 90, complete=True)),
    ]
    [scaling] = find_scalings(sets)
    assert [size.tokens_per_s_per_gpu for size in scaling.sizes] == [100, 90]


def test_the_settings_that_differ_come_first(page: str) -> None:
    provenance = page[page.index('id="provenance"') :]
    differences, common = provenance.split("Common to all runs")
    assert "580.65.06" in differences
    assert "workload.image" in common


def test_the_command_writes_the_page(llmb: Llmb, tmp_path: Path) -> None:
    [run_id] = record_runs([step_times(1.0)])
    file = tmp_path / "report.html"
    assert llmb("report", run_id, "-o", file).status == 0
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert llmb("report", run_id, "-o", "-").out == file.read_text()
    assert ("report", "extension", version("llmb-report")) in [
        (each["name"], each["kind"], each["version"]) for each in llmb("plugins", "--json").json["plugins"]
    ]


def test_a_home_that_cannot_be_written_to_is_no_message(campaign: list[str], tmp_path: Path) -> None:
    """The library of the plots keeps an index of fonts there, and warns."""
    (tmp_path / "file").touch()
    words = [sys.executable, "-m", "llmb", "report", campaign[0], "-o", "page.html"]
    environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path / "file/cache")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "llmb: wrote page.html\n"


def test_a_configuration_that_is_not_published_has_no_ratio() -> None:
    point = {"gpus": 8, "steps": 20}
    page = write_page(
        *record_runs([[PUBLISHED_S] * 20], workload=point, parallelism={"global_batch_size": 16, "fsdp": 8})
    )
    assert "no verdict" in page
    assert 'id="ratio"' not in page
    assert 'id="tokens-per-s"' in page


def test_no_step_is_below_the_plot() -> None:
    page = write_page(*record_runs([[PUBLISHED_S] * 20 + [0.5 * PUBLISHED_S]]))
    [figure] = re.findall(r'<figure id="steps-1">.*?</figure>', page, re.DOTALL)
    [line] = re.findall(r'<path d="([^"]*)"[^>]*stroke: var\(--measured\)', figure)
    ordinates = [float(each) for each in re.findall(r"[ML] \S+ (\S+?)(?=[ML\s]|$)", line)]
    [bottom] = re.findall(r'<rect x="64" y="24" width="346" height="(\S+)"', figure)
    assert max(ordinates) < 24 + float(bottom)
