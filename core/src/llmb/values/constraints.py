"""What frameworks refuse of a run in the same words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from llmb.values.errors import Fault
from llmb.values.run import Run

DOTTED_KEY = re.compile(r"[^\s=.]+(\.[^\s=.]+)*")


def unsupported_degrees(run: Run[Any], names: Iterable[str], *, why: str = "") -> Iterator[Fault]:
    """A fault for each of these kinds of parallelism that is on, with the reason why it cannot be."""
    for name in names:
        if (degree := getattr(run.parallelism, name)) not in (None, 1):
            message = f"is {degree}, and {why}" if why else f"is {degree}"
            yield Fault(message=message, key=f"parallelism.{name}", expected="1 with this recipe")


def forbid_options(
    names: Iterable[str], decided: Mapping[str, str], *, table: str = "framework.config"
) -> Iterator[Fault]:
    """What `forbid_key` says of each of these keys of a table of the spec."""
    for name in names:
        if fault := forbid_key(name, decided, key=f"{table}.{name}"):
            yield fault


def check_sequence(run: Run[Any], *, tensor_ranks: int = 1) -> Iterator[Fault]:
    """A fault for sequences that context parallelism, or sequence parallelism, cannot share out evenly.

    It is for frameworks in which each of cp ranks takes a chunk from the front and one from the back, so that all have
    as much to attend to. Of what a rank has, each of ``tensor_ranks`` (tp where sequence parallelism is on) takes the
    same part.
    """
    cp = run.parallelism.cp
    parts = cp * math.lcm(2 if cp > 1 else 1, tensor_ranks)
    if run.model.seq_len % parts:
        shares = [f"each of cp = {cp} ranks takes two"] if cp > 1 else []
        shares += [f"sequence parallelism divides among tp = {tensor_ranks}"] if tensor_ranks > 1 else []
        message = f"{run.model.seq_len} tokens cannot be cut into {parts} parts of one size: {', '.join(shares)}"
        yield Fault(message=message, key="model.seq_len", expected=f"a multiple of {parts}")


def check_query_groups(run: Run[Any]) -> Iterator[Fault]:
    """A fault for query groups that cannot be shared out whole among tensor ranks.

    It is for frameworks that copy no group to several ranks, and so give no rank a part of one.
    """
    groups, tp = run.model.query_groups, run.parallelism.tp
    if groups % tp:
        message = f"{groups} query groups cannot be divided by tp = {tp}"
        yield Fault(message=message, key="parallelism.tp", expected=f"a divisor of {groups}")


def check_experts(run: Run[Any]) -> Iterator[Fault]:
    """A fault for each number of experts that a run asks for, although the model of its recipe has none."""
    if run.published_model.experts > 1:
        return
    for name in ("experts", "top_k"):
        if (number := getattr(run.model, name)) > 1:
            message = f"is {number}, and the recipe's model has no experts"
            yield Fault(message=message, key=f"model.{name}", expected="1")


def forbid_key(name: str, decided: Mapping[str, str], *, key: str) -> Fault | None:
    """The fault of a trainer's setting that is none, that the rest of a spec decides, or that holds such a one.

    ``name`` is dotted, as ``decided`` has them: that maps such settings, or the table that they are in, to what decides
    them; nothing, where nobody may. ``key`` is the setting as the spec has it.
    """
    if not DOTTED_KEY.fullmatch(name):
        return Fault(message="is not a key", key=key, expected="names with dots between them, without blanks")
    for each, by in decided.items():
        if name == each or name.startswith(f"{each}."):
            expected = f"{by} in its place" if by else "no such key"
            return Fault(message="is decided by the rest of the spec", key=key, expected=expected)
        if each.startswith(f"{name}."):
            message = f"holds {each}, which is decided by the rest of the spec"
            return Fault(message=message, key=key, expected="the keys that it holds, one by one")
    return None


def forbid_env(run: Run[Any], decided: Mapping[str, str]) -> Iterator[Fault]:
    """A fault for each variable of the spec's [env] that the framework sets itself and cannot do without.

    ``decided`` maps the names of such variables to why, as the end of a sentence.
    """
    for name, why in decided.items():
        if name in run.env:
            yield Fault(message=f"cannot be set: {why}", key=f"env.{name}", expected="no such key")
