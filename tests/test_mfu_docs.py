"""docs/mfu.md computes the FLOPs of one model of each kind by hand."""

from __future__ import annotations

import ast
import csv
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import llmb
from llmb.analysis.flops import flops_per_sequence

PAGE = re.sub(r"(?<=\S)\n  (?=\S)", " ", (Path(__file__).parents[1] / "docs/mfu.md").read_text())  # lists unwrapped
EXAMPLES = re.findall(r"^- \*\*[^*]*, ([^*,]+)\*\* \(s = \d+\)(.*?)(?=^- \*\*|\n\n)", PAGE, re.MULTILINE | re.DOTALL)
SUMS = [(name, *each) for name, text in EXAMPLES for each in re.findall(r"`(6 x [^`]*|3 x [^`]*) = ([\d.]+) G`", text)]
ROWS = {
    cells[1]: [float(cell) for cell in cells[3:-1] if cell]
    for line in PAGE.splitlines()
    if len(cells := [cell.strip() for cell in line.split("|")]) == 9 and re.fullmatch(r"[\d.]+", cells[-2])
}
RECIPES = {
    "Llama 3 8B": "llama3.1-8b",
    "Qwen3 30B-A3B": "qwen3-30b-a3b",
    "GPT-OSS 120B": "gpt-oss-120b",
    "DeepSeek-V3": "deepseek-v3",
    "Nemotron-H 56B": "nemotron-h-56b",
    "Nemotron 3 Super": "nemotron3-super-120b",
    "Llama 3 70B LoRA": "llama3-70b-lora",
}
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def computed(text: str) -> float:
    """Return the value of a sum in the page: products with x, squares, and results in G."""
    plain = re.sub(r"([\d.]+) G", r"\1e9", text.replace("²", "**2").replace(" x ", "*"))

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            return float(OPERATORS[type(node.op)](value(node.left), value(node.right)))
        assert isinstance(node, ast.Constant)
        return float(node.value)  # type: ignore[arg-type]

    return value(ast.parse(plain, mode="eval").body)


@pytest.mark.parametrize(("name", "text", "result"), SUMS)
def test_each_sum_has_the_result_in_the_page(name: str, text: str, result: str) -> None:
    assert f"{computed(text) / 1e9:.2f}" == result


@pytest.mark.parametrize("name", RECIPES)
def test_the_sums_of_a_model_are_those_of_the_table_and_of_its_recipe(name: str) -> None:
    *parts, total = ROWS[name]
    shown = [float(result) for each, _, result in SUMS if each == name]
    assert [part for part in parts if part not in shown] == []
    recipe = llmb.load_recipe(f"megatron_bridge/{RECIPES[name]}@26.06")
    assert recipe.model is not None
    assert recipe.flop_formula is not None
    counted = flops_per_sequence(recipe.model, recipe.flop_formula, tp=1) / recipe.seq_len / 1e9
    assert total == pytest.approx(counted, abs=0.006)
    assert sum(parts) == pytest.approx(total, abs=0.016)


def test_each_kind_of_model_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} == set(RECIPES) == set(ROWS)


def test_the_numbers_of_configurations_and_published_results_are_those_of_the_facts() -> None:
    facts = Path(__file__).parent / "conformance"

    def rows(name: str) -> list[dict[str, str]]:
        return list(csv.DictReader((facts / name).read_text().splitlines()))

    configurations = sum(int(row["configurations"]) for row in rows("megatron_bridge-flops.csv"))
    published = len(rows("megatron_bridge-published.csv"))
    contradictions = re.search(
        r"^CONTRADICTIONS = {\n(.*?)^}", (facts / "test_flops_conformance.py").read_text(), re.M | re.S
    )
    assert contradictions
    agree = published - len(re.findall(r"^    \(", contradictions[1], re.M))
    lora = len(rows("megatron_bridge-published-lora.csv"))
    shown = re.search(
        r"for (\d+) configurations\. Of (\d+) published results, (\d+) agree "
        r".*?All (\d+) published results of LoRA agree",
        PAGE,
        re.S,
    )
    assert shown
    assert [int(number) for number in shown.groups()] == [configurations, published, agree, lora]


def test_the_window_of_gpt_oss_counts_as_in_version_0_5() -> None:
    recipe = llmb.load_recipe("megatron_bridge/gpt-oss-120b@26.06")
    model = recipe.model
    assert model is not None
    assert model.sliding_window == 128
    assert f"= {128 - 128 * 127 / (2 * model.seq_len):.3f} keys" in PAGE
    before, after = (
        flops_per_sequence(model, formula, tp=1) / model.seq_len / 1e9
        for formula in ("megatron-bridge-0.1", "megatron-bridge-0.5")
    )
    assert f"Together with the vocabulary that is {after:.2f} G" in PAGE
    assert f"0.5 counts {100 * (after / before - 1):.1f} % more FLOPs" in PAGE
