"""Checks that several frameworks share, with the same messages. Each returns its errors, none for a valid run."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from llmb.values.errors import Fault
from llmb.values.run import Run
from llmb.values.texts.error_text import invalid_value

DOTTED_KEY = re.compile(r"[^\s=.]+(\.[^\s=.]+)*")


def unsupported_degrees(run: Run[Any], names: Iterable[str], *, why: str = "") -> tuple[Fault, ...]:
    """Return an error for each of these kinds of parallelism that is on, with the reason."""
    reason = f": {why}" if why else ""
    degrees = {name: getattr(run.parallelism, name) for name in names}
    return tuple(
        Fault(message=f"{degree} is not supported{reason}", key=f"parallelism.{name}", expected="1")
        for name, degree in degrees.items()
        if degree not in (None, 1)
    )


def check_sequence(run: Run[Any], *, tensor_ranks: int = 1) -> tuple[Fault, ...]:
    """Return an error if context parallelism, or sequence parallelism, does not divide the sequence evenly.

    This is for frameworks in which each of cp ranks takes a chunk from the front of the sequence and one from the back,
    so that all ranks attend to equally many tokens. ``tensor_ranks`` is tp with sequence parallelism, which divides the
    chunks of a rank.
    """
    cp = run.parallelism.cp
    parts = cp * math.lcm(2 if cp > 1 else 1, tensor_ranks)
    if run.seq_len % parts == 0:
        return ()
    shares = [f"each of cp = {cp} ranks takes two chunks"] if cp > 1 else []
    shares += [f"sequence parallelism divides by tp = {tensor_ranks}"] if tensor_ranks > 1 else []
    message = f"{run.seq_len} tokens are not divisible by {parts}: {', '.join(shares)}"
    return (Fault(message=message, key="model.seq_len", expected=f"a multiple of {parts}"),)


def check_query_groups(run: Run[Any]) -> tuple[Fault, ...]:
    """Return an error if tp does not divide the query groups.

    This is for frameworks that copy no group to several ranks, and give no rank a part of a group.
    """
    groups, tp = run.model.query_groups, run.parallelism.tp
    if groups % tp == 0:
        return ()
    message = f"{groups} query groups are not divisible by tp = {tp}"
    return (Fault(message=message, key="parallelism.tp", expected=f"a divisor of {groups}"),)


def check_interleaving(run: Run[Any]) -> tuple[Fault, ...]:
    """Return an error if interleaved stages would have an incomplete group of micro batches.

    This is for frameworks in which the stages of a rank take turns after each group of pp micro batches.
    """
    parallelism = run.parallelism
    batches, pp = parallelism.gradient_accumulation(run.gpus), parallelism.pp
    if (parallelism.vp or 1) == 1 or batches % pp == 0:
        return ()
    message = f"gradient accumulation {batches} is not divisible by pp = {pp}, as interleaved stages require"
    step = parallelism.global_batch_size // batches * pp
    expected = f"a multiple of {step}, or vp = 1"
    return (Fault(message=message, key="parallelism.global_batch_size", expected=expected),)


def check_experts(run: Run[Any]) -> tuple[Fault, ...]:
    """Return an error for each number of experts above 1 if the recipe's model has no experts."""
    if run.published_model.experts > 1:
        return ()
    reason = "the recipe's model has no experts"
    return tuple(
        Fault(message=f"{invalid_value(number)}: {reason}", key=f"model.{name}", expected="1")
        for name in ("experts", "top_k")
        if (number := getattr(run.model, name)) > 1
    )


def forbid_options(
    names: Iterable[str], set_by_llmb: Mapping[str, str], *, table: str = "framework.config"
) -> tuple[Fault, ...]:
    """Return the errors of `forbid_key` for these keys of a table of the spec."""
    found = (forbid_key(name, set_by_llmb, key=f"{table}.{name}") for name in names)
    return tuple(fault for fault in found if fault)


def forbid_key(name: str, set_by_llmb: Mapping[str, str], *, key: str) -> Fault | None:
    """Return the error of a trainer's setting that is malformed, or that llmb sets from the rest of the spec.

    ``set_by_llmb`` maps the dotted names of such settings, or of tables of them, to the key of the spec that sets them,
    or to an empty string. ``name`` is the setting's dotted name, ``key`` its key in the spec.
    """
    if not DOTTED_KEY.fullmatch(name):
        return Fault(message="invalid key", key=key, expected="names with dots between them, without blanks")
    for each, by in set_by_llmb.items():
        if name == each or name.startswith(f"{each}."):
            message = "llmb sets this key" if by else "llmb sets this key; remove it"
            return Fault(message=message, key=key, expected=f"{by} instead" if by else None)
        if each.startswith(f"{name}."):
            message = f"this table contains {each}, which llmb sets"
            return Fault(message=message, key=key, expected="its other keys one by one")
    return None


def forbid_env(run: Run[Any], set_by_llmb: Mapping[str, str]) -> tuple[Fault, ...]:
    """Return an error for each variable of the spec's [env] that the framework must set itself.

    ``set_by_llmb`` maps the names of such variables to the reason.
    """
    return tuple(
        Fault(message=f"{name} must not be set, because {reason}; remove it", key=f"env.{name}")
        for name, reason in set_by_llmb.items()
        if name in run.env
    )
