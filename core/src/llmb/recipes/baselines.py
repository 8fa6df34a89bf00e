"""The [[baselines]] of a recipe: what its publisher measured, with one value in each column for each of gpus."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from llmb.analysis.valid_range import is_plausible, range_faults
from llmb.recipes.accelerators import accelerators
from llmb.recipes.recipe_tables import BaselineTable, RecipeTable
from llmb.recipes.sizes import DEFAULT_DTYPES, flops_per_token
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap
from llmb.values.model import FlopFormula
from llmb.values.recipe import Baseline, Point
from llmb.values.texts.error_text import REQUIRED_KEY, counted, format_choices

PointKey = tuple[str, str, str | None, int]
"""The gpu_type, dtype, variant and gpus of a point."""

STATED = ("step_time_s", "tflops_per_gpu", "tokens_per_s_per_gpu")
"""Columns of which one is required. A step time is stated, or computed from the first of the others that is stated."""

_COLUMNS = (*STATED, "tokens_per_s", "mfu_percent", "days_per_1t_tokens")


_UNITS = {
    "step_time_s": ("s", "seconds, not minutes or hours", "seconds, not milliseconds"),
    "tflops_per_gpu": ("TFLOP/s", "TFLOP/s of one GPU, not GFLOP/s or those of all GPUs", "TFLOP/s, not PFLOP/s"),
    "tokens_per_s_per_gpu": (
        "tokens/s per GPU",
        "tokens/s of one GPU, not those of all GPUs",
        "tokens/s, not thousands of tokens/s",
    ),
}
"""The unit of each column, and what is expected instead of a value that is too fast, and of one that is too slow."""


@attrs.frozen(kw_only=True)
class PublishedRow:
    """The published values of one point; ``place`` is the table's key in the file."""

    place: str
    values: Mapping[str, float | None]
    release: str
    source: str
    note: str
    flop_formula: FlopFormula | None

    def as_baseline(self, gpus: int, tokens_per_step: int, flops_per_step: float | None) -> Baseline:
        """Return the row as a baseline, with tokens/s and step time computed from the values of one GPU if necessary.

        step time = FLOPs per step / (GPUs x FLOP/s per GPU), or tokens per step / (GPUs x tokens/s per GPU)
        """
        values: dict[str, Any] = dict(self.values)
        if (tflops := values.get("tflops_per_gpu")) and flops_per_step is not None:
            step_time_s = flops_per_step / (gpus * tflops * 1e12)
            values = {"step_time_s": step_time_s, "tokens_per_s": tokens_per_step / step_time_s} | values
        if per_gpu := values.pop("tokens_per_s_per_gpu", None):
            values = {"tokens_per_s": gpus * per_gpu, "step_time_s": tokens_per_step / (gpus * per_gpu)} | values
        percent = values.pop("mfu_percent", None)
        mfu = None if percent is None else round(percent / 100, 9)  # 0.454, not 0.45399999999999996
        return Baseline(**values, mfu=mfu, release=self.release, source=self.source, note=self.note)


def read_baselines(recipe: RecipeTable) -> tuple[dict[PointKey, list[PublishedRow]], list[Fault]]:
    """Return the published rows by point, in the order of the file, and the errors of the others."""
    rows: dict[PointKey, list[PublishedRow]] = {}
    errors: list[Fault] = []
    for index, table in enumerate(recipe.baselines):
        key = f"baselines[{index}]"
        wrong = list(_check_table(table, key, recipe))
        for point, row in {} if wrong else _rows(table, key, recipe).items():
            wrong += _check_duplicates(point, row, rows.get(point, []))
            rows.setdefault(point, []).append(row)
        errors += wrong
    return rows, errors


def point_name(point: PointKey) -> str:
    """Return the name of a point for messages: "h100 bf16 on 64 GPUs"."""
    gpu_type, dtype, variant, gpus = point
    return f"{' '.join(filter(None, (gpu_type, dtype, variant)))} on {counted(gpus, 'GPU')}"


def _columns(table: BaselineTable) -> dict[str, tuple[float | None, ...]]:
    columns = {name: getattr(table, name) for name in _COLUMNS}
    return {name: column for name, column in columns.items() if column is not None}


def _check_table(table: BaselineTable, key: str, recipe: RecipeTable) -> Iterator[Fault]:
    stated = [name for name in STATED if getattr(table, name) is not None]
    if not stated:
        yield Fault(message=REQUIRED_KEY, key=f"{key}.step_time_s", expected=format_choices(STATED))
    if stated == ["tflops_per_gpu"] and recipe.model is None and flops_per_token(recipe) is None:
        message = "no step time follows from this value, because the recipe states no FLOPs"
        yield Fault(message=message, key=f"{key}.tflops_per_gpu", expected="step_time_s or tokens_per_s_per_gpu")
    for name, column in _columns(table).items():
        if len(column) != len(table.gpus):
            expected = f"{len(table.gpus)}, one for each of gpus"
            yield Fault(message=counted(len(column), "value"), key=f"{key}.{name}", expected=expected)
    dtypes = () if recipe.points else recipe.dtypes or DEFAULT_DTYPES
    if dtypes and table.dtype not in dtypes:
        message = f"{table.dtype} is not a dtype of this recipe"
        yield Fault(message=message, key=f"{key}.dtype", expected=format_choices(dtypes))
    if table.variant and not recipe.points:
        yield Fault(message="a recipe without [[points]] has no variants", key=f"{key}.variant", expected="no such key")
    known = sorted(map(str, table.gpus))
    for gpus in table.notes:
        if gpus not in known:
            yield Fault(message="not one of gpus", key=f"{key}.notes.{gpus}", expected=f"one of {', '.join(known)}")


def _check_duplicates(point: PointKey, row: PublishedRow, others: Iterable[PublishedRow]) -> Iterator[Fault]:
    """Yield an error if a point has another row of the same release."""
    for other in others:
        if other.release == row.release:
            message = f"{point_name(point)} already has a baseline of release {row.release} in {other.place}"
            yield Fault(message=message, key=f"{row.place}.gpus")


def _rows(table: BaselineTable, key: str, recipe: RecipeTable) -> dict[PointKey, PublishedRow]:
    """Return a row for each number of GPUs of a table."""
    return {
        (table.gpu_type, table.dtype, table.variant, gpus): PublishedRow(
            place=key,
            values=FrozenMap((name, column[index]) for name, column in _columns(table).items()),
            release=table.release or recipe.release,
            source=table.source or recipe.source,
            note=table.notes.get(str(gpus), ""),
            flop_formula=table.flop_formula or recipe.flop_formula,
        )
        for index, gpus in enumerate(table.gpus)
    }


def check_baseline(
    point: Point, row: PublishedRow, baseline: Baseline, flops_per_step: float | None
) -> Iterator[Fault]:
    """Yield an error if a baseline is out of range, or far from every step time that its GPUs can have.

    Such a value is in another unit. A GPU type without a peak in core's table, such as a CPU, has no such limit.
    """
    name = next(each for each in STATED if row.values.get(each) is not None)
    key, value = f"{row.place}.{name}", row.values[name]
    unit, if_fast, if_slow = _UNITS[name]
    if faults := range_faults(baseline.step_time_s, baseline.tflops_per_gpu):
        found = next((each for each in faults if each.key == name), faults[0])
        yield Fault(message=found.message, key=key, expected=found.expected)
        return
    known = accelerators().get(point.gpu_type)
    peak = known.peak_flops.get(point.dtype) if known else None
    if peak is None or flops_per_step is None:
        return
    mfu = flops_per_step / (point.gpus * peak) / baseline.step_time_s
    if not is_plausible(mfu, baseline.step_time_s):
        message = f"{value:g} {unit} on {counted(point.gpus, 'GPU')} is an MFU of {100 * mfu:.2g} %"
        yield Fault(message=message, key=key, expected=if_fast if mfu > 1 else if_slow)
