"""Rules that compute numbers from the number of GPUs."""

from __future__ import annotations

import pytest

from llmb.recipes.scaling_rules import evaluate_rule, is_rule


@pytest.mark.parametrize(
    ("rule", "gpus", "expected"),
    [
        (128, 64, 128),
        ("128", 64, 128),
        ("gpus", 64, 64),
        ("2 * gpus", 64, 128),
        ("gpus*2", 64, 128),
        ("gpus / 2", 64, 32),
        ("252 * gpus / 576", 1152, 504),
        ("gpus / 576 * 252", 1152, 504),
        ("gpus / 4 / 2", 64, 8),
    ],
)
def test_a_rule_is_evaluated_exactly(rule: int | str, gpus: int, expected: int) -> None:
    assert is_rule(rule)
    assert evaluate_rule(rule, gpus) == expected


@pytest.mark.parametrize(
    ("rule", "gpus", "value"),
    [("gpus / 3", 64, "21.3333"), ("252 * gpus / 576", 100, "43.75"), ("gpus / 128", 64, "0.5"), ("0", 8, "0")],
)
def test_a_rule_without_an_integer_result_is_rejected(rule: str, gpus: int, value: str) -> None:
    with pytest.raises(ValueError, match=f"^{value}$"):
        evaluate_rule(rule, gpus)


@pytest.mark.parametrize("rule", ["2147483648", "gpus * 999999999", f"{'9' * 400} / 7"])
def test_a_result_that_no_framework_can_store_is_rejected(rule: str) -> None:
    with pytest.raises(ValueError, match=r"^too large$"):
        evaluate_rule(rule, 8)
    assert not is_rule(2**31)


def test_a_division_by_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="a division by 0"):
        evaluate_rule("gpus / 0", 8)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "pods",
        "2 ** gpus",
        "gpus + 1",
        "gpus gpus",
        "2 4",
        "gpus _per_node",
        "__import__('os')",
        "-2",
        0,
        -1,
        True,
        1.5,
        None,
    ],
)
def test_nothing_else_is_a_rule(rule: object) -> None:
    assert not is_rule(rule)
