"""The [[baselines]] of a recipe: what its publisher measured, one column for each number of GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from llmb.values.error_text import REQUIRED_KEY, counted
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap
from llmb.values.recipe import Baseline
from llmb.values.tables import Reader, check_table, figure, listed, number, settings, string, whole

PointKey = tuple[str, str, int]
"""What names a point: gpu_type, dtype, gpus."""

_COLUMNS: Mapping[str, Reader] = {
    "step_time_s": listed(number),
    "tokens_per_s_per_gpu": listed(number),
    "tokens_per_s": listed(figure),
    "mfu_percent": listed(figure),
    "days_per_1t_tokens": listed(figure),
}
_CHECKS: Mapping[str, Reader] = {
    "gpu_type": string,
    "dtype": string,
    "gpus": listed(whole, distinct=True),
    **_COLUMNS,
    "release": string,
    "source": string,
    "notes": settings,
}
_REQUIRED = ("gpu_type", "dtype", "gpus")


@attrs.frozen(kw_only=True)
class Published:
    """What a publisher states of one point; ``place`` is where in the file. See `at`."""

    place: str
    figures: Mapping[str, float | None]
    release: str
    source: str
    note: str

    def at(self, gpus: int, tokens_per_step: int) -> Baseline:
        """As a baseline. Where the tokens/s of one GPU are published, those of all and the step time follow.

        step time = tokens per step / (GPUs x tokens/s per GPU)
        """
        figures: dict[str, Any] = dict(self.figures)
        if per_gpu := figures.pop("tokens_per_s_per_gpu", None):
            figures = {"tokens_per_s": gpus * per_gpu, "step_time_s": tokens_per_step / (gpus * per_gpu)} | figures
        percent = figures.pop("mfu_percent", None)
        mfu = None if percent is None else round(percent / 100, 9)  # 0.454, not 0.45399999999999996
        return Baseline(**figures, mfu=mfu, release=self.release, source=self.source, note=self.note)


def read_baselines(
    tables: Sequence[Any], *, release: str, source: str
) -> tuple[dict[PointKey, Published], list[Fault]]:
    """The published figures by point, and all that is wrong with them.

    ``release`` and ``source`` are the recipe's own, for tables that state none.
    """
    found: dict[PointKey, Published] = {}
    faults: list[Fault] = []
    for index, table in enumerate(tables):
        key = f"baselines[{index}]"
        values, wrong = check_table(table, key, _CHECKS, _REQUIRED)
        wrong = wrong or [
            *_without_speed(values, key),
            *_uneven(values, key),
            *_notes_astray(values, key),
            *_given_before(values, key, found),
        ]
        faults += wrong
        if not wrong:
            found |= _rows(values, key, release, source)
    return found, faults


def _without_speed(values: Mapping[str, Any], key: str) -> list[Fault]:
    if "step_time_s" in values or "tokens_per_s_per_gpu" in values:
        return []
    return [Fault(message=REQUIRED_KEY, key=f"{key}.step_time_s", expected="step_time_s or tokens_per_s_per_gpu")]


def _uneven(values: Mapping[str, Any], key: str) -> list[Fault]:
    count = len(values["gpus"])
    columns = {name: len(values[name]) for name in _COLUMNS if name in values}
    return [
        Fault(message=f"has {length} figures", key=f"{key}.{name}", expected=f"{count}, one for each of gpus")
        for name, length in columns.items()
        if length != count
    ]


def _notes_astray(values: Mapping[str, Any], key: str) -> list[Fault]:
    known = {str(gpus) for gpus in values["gpus"]}
    return [
        Fault(message="is not one of gpus", key=f"{key}.notes.{gpus}", expected=f"one of {', '.join(sorted(known))}")
        for gpus in values.get("notes", {})
        if gpus not in known
    ]


def _given_before(values: Mapping[str, Any], key: str, found: Mapping[PointKey, Published]) -> list[Fault]:
    points = [(values["gpu_type"], values["dtype"], gpus) for gpus in values["gpus"]]
    return [
        Fault(message=f"{point_name(point)} has its baseline in {found[point].place} already", key=f"{key}.gpus")
        for point in points
        if point in found
    ]


def _rows(values: Mapping[str, Any], key: str, release: str, source: str) -> dict[PointKey, Published]:
    return {
        (values["gpu_type"], values["dtype"], gpus): Published(
            place=key,
            figures=FrozenMap((name, values[name][column]) for name in _COLUMNS if name in values),
            release=values.get("release", release),
            source=values.get("source", source),
            note=values.get("notes", {}).get(str(gpus), ""),
        )
        for column, gpus in enumerate(values["gpus"])
    }


def point_name(point: PointKey) -> str:
    """A point as people say it: "h100 bf16 on 64 GPUs"."""
    gpu_type, dtype, gpus = point
    return f"{gpu_type} {dtype} on {counted(gpus, 'GPU')}"
