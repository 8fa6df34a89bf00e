"""The sizes of a recipe: its architecture or its parameters, its sequences, and its batch without [[points]]."""

from collections.abc import Iterable, Iterator

import attrs

from llmb.analysis.flops import FLOPS_PER_PARAMETER
from llmb.recipes.accelerators import accelerators
from llmb.recipes.listing import sort_dtypes
from llmb.recipes.recipe_tables import PointTable, RecipeTable
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap
from llmb.values.model import Parallelism
from llmb.values.recipe import ScalingRule
from llmb.values.texts.error_text import REQUIRED_KEY, unknown_name

DEGREES = tuple(field.name for field in attrs.fields(Parallelism) if field.name != "pipeline_layout")
"""The keys of a table of points that may be rules."""

DEFAULT_DTYPES = ("bf16",)
"""The dtypes of a recipe without [[points]] that states none."""


def check_sizes(table: RecipeTable) -> Iterator[Fault]:
    """Yield the errors of keys that are missing, or of which only one may be set."""
    stated = [name for name in ("model", "params", "flops_per_token") if getattr(table, name) is not None]
    if len(stated) > 1:
        message = f"{' and '.join(stated)} both state the FLOPs"
        yield Fault(message=message, key=stated[-1], expected="at most one of model, params and flops_per_token")
    if (table.model is None) != (table.flop_formula is None):
        missing = "model" if table.model is None else "flop_formula"
        yield Fault(message=REQUIRED_KEY, key=missing, expected="both model and flop_formula, or none of them")
    if table.active_params is not None and table.params is None:
        yield Fault(message=REQUIRED_KEY, key="params", expected="all parameters, besides active_params")
    if table.active_params and table.params and table.active_params > table.params:
        message = f"{table.active_params:g} of {table.params:g} parameters"
        yield Fault(message=message, key="active_params", expected=f"at most {table.params:g}, the value of params")
    if table.model is None and table.seq_len is None:
        yield Fault(message=REQUIRED_KEY, key="seq_len", expected="the tokens of a sequence, or a table [model]")
    elif table.model and table.seq_len not in (None, table.model.seq_len):
        message = f"{table.seq_len}, but model.seq_len is {table.model.seq_len}"
        yield Fault(message=message, key="seq_len", expected="no such key besides model.seq_len")
    yield from _check_batch(table)
    yield from check_dtypes(table.dtypes or (), "dtypes")


def _check_batch(table: RecipeTable) -> Iterator[Fault]:
    if not table.points and table.global_batch_size is None:
        expected = 'a number or a rule such as "8 * gpus", or tables [[points]]'
        yield Fault(message=REQUIRED_KEY, key="global_batch_size", expected=expected)
    for name in (*DEGREES, "dtypes") if table.points else ():
        if getattr(table, name) not in (None, 1):
            yield Fault(
                message="each of [[points]] has this value", key=name, expected="no such key besides [[points]]"
            )


def check_dtypes(dtypes: Iterable[str], key: str) -> Iterator[Fault]:
    """Yield an error for each other spelling of a dtype of core's GPU types, such as ``bfloat16`` or ``BF16``.

    Any other name may be a dtype that only an extension knows.
    """
    known = sort_dtypes(dtype for each in accelerators().values() for dtype in each.dtypes)
    for dtype in dtypes:
        usual = dtype.lower().replace("bfloat", "bf").replace("float", "fp")
        if dtype not in known and usual in known:
            yield attrs.evolve(unknown_name(f'unknown dtype "{dtype}"', dtype, known, key=key), nearest=usual)


def sequence_length(table: RecipeTable) -> int:
    """Return the tokens of a sequence. The table is valid."""
    return table.seq_len or (table.model.seq_len if table.model else 1)


def flops_per_token(table: RecipeTable) -> float | None:
    """Return the FLOPs of a token, forward and backward, or None with an architecture or without any statement."""
    params = table.active_params or table.params
    return table.flops_per_token if params is None else FLOPS_PER_PARAMETER * params


def scaling_rule(table: PointTable | RecipeTable, condition: str) -> ScalingRule:
    """Return the rule that computes the degrees of a table for the numbers of GPUs of a condition."""
    return ScalingRule(condition=condition, degrees=FrozenMap((name, getattr(table, name)) for name in DEGREES))
