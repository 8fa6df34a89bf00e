"""Checks that several frameworks share, with the same messages."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from llmb.values.error_text import invalid_value
from llmb.values.errors import Fault
from llmb.values.run import Run

DOTTED_KEY = re.compile(r"[^\s=.]+(\.[^\s=.]+)*")


def unsupported_degrees(run: Run[Any], names: Iterable[str], *, why: str = "") -> Iterator[Fault]:
    """Yield an error for each of these kinds of parallelism that is on, with the reason."""
    for name in names:
        if (degree := getattr(run.parallelism, name)) not in (None, 1):
            reason = f": {why}" if why else ""
            yield Fault(message=f"{degree} is not supported{reason}", key=f"parallelism.{name}", expected="1")


def check_sequence(run: Run[Any], *, tensor_ranks: int = 1) -> Iterator[Fault]:
    """Yield an error if context parallelism, or sequence parallelism, does not divide the sequence evenly.

    This is for frameworks in which each of cp ranks takes a chunk from the front of the sequence and one from the back,
    so that all ranks attend to equally many tokens. ``tensor_ranks`` is tp with sequence parallelism, which divides the
    chunks of a rank.
    """
    cp = run.parallelism.cp
    parts = cp * math.lcm(2 if cp > 1 else 1, tensor_ranks)
    if run.seq_len % parts:
        shares = [f"each of cp = {cp} ranks takes two chunks"] if cp > 1 else []
        shares += [f"sequence parallelism divides by tp = {tensor_ranks}"] if tensor_ranks > 1 else []
        message = f"{run.seq_len} tokens are not divisible by {parts}: {', '.join(shares)}"
        yield Fault(message=message, key="model.seq_len", expected=f"a multiple of {parts}")


def check_query_groups(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error if tp does not divide the query groups.

    This is for frameworks that copy no group to several ranks, and give no rank a part of a group.
    """
    groups, tp = run.model.query_groups, run.parallelism.tp
    if groups % tp:
        message = f"{groups} query groups are not divisible by tp = {tp}"
        yield Fault(message=message, key="parallelism.tp", expected=f"a divisor of {groups}")


def check_interleaving(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error if interleaved stages would have an incomplete group of micro batches.

    This is for frameworks in which the stages of a rank take turns after each group of pp micro batches.
    """
    parallelism = run.parallelism
    batches, pp = parallelism.gradient_accumulation(run.gpus), parallelism.pp
    if (parallelism.vp or 1) > 1 and batches % pp:
        message = f"gradient accumulation {batches} is not divisible by pp = {pp}, as interleaved stages require"
        step = parallelism.global_batch_size // batches * pp
        yield Fault(message=message, key="parallelism.global_batch_size", expected=f"a multiple of {step}, or vp = 1")


def check_experts(run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for each number of experts above 1 if the recipe's model has no experts."""
    if run.published_model.experts > 1:
        return
    for name in ("experts", "top_k"):
        if (number := getattr(run.model, name)) > 1:
            message = f"{invalid_value(number)}: the recipe's model has no experts"
            yield Fault(message=message, key=f"model.{name}", expected="1")


def forbid_options(
    names: Iterable[str], decided: Mapping[str, str], *, table: str = "framework.config"
) -> Iterator[Fault]:
    """Yield the errors of `forbid_key` for these keys of a table of the spec."""
    for name in names:
        if fault := forbid_key(name, decided, key=f"{table}.{name}"):
            yield fault


def forbid_key(name: str, decided: Mapping[str, str], *, key: str) -> Fault | None:
    """Return the error of a trainer's setting that is malformed, or that llmb sets from the rest of the spec.

    ``decided`` maps the dotted names of such settings, or of tables of them, to the key of the spec that decides them,
    or to an empty string. ``name`` is the setting's dotted name, ``key`` its key in the spec.
    """
    if not DOTTED_KEY.fullmatch(name):
        return Fault(message="invalid key", key=key, expected="names with dots between them, without blanks")
    for each, by in decided.items():
        if name == each or name.startswith(f"{each}."):
            message = "llmb sets this key" if by else "llmb sets this key; remove it"
            return Fault(message=message, key=key, expected=f"{by} instead" if by else None)
        if each.startswith(f"{name}."):
            message = f"this table contains {each}, which llmb sets"
            return Fault(message=message, key=key, expected="its other keys one by one")
    return None


def forbid_env(run: Run[Any], decided: Mapping[str, str]) -> Iterator[Fault]:
    """Yield an error for each variable of the spec's [env] that the framework must set itself.

    ``decided`` maps the names of such variables to the reason.
    """
    for name, reason in decided.items():
        if name in run.env:
            yield Fault(message=f"{name} must not be set, because {reason}; remove it", key=f"env.{name}")
