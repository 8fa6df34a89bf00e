"""A [target] table by itself, without a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmb.plugins.pool import PluginPool
from llmb.spec.assemble import assemble_target
from llmb.spec.check import TARGET_KEYS, check_options, check_target, place_faults
from llmb.spec.expand import Point
from llmb.spec.targets import NamedTargets
from llmb.values.errors import SpecError
from llmb.values.run import Target
from llmb.values.workload import Written


def load_target(table: Mapping[str, Any], pool: PluginPool) -> tuple[Target[Any], dict[str, Any]]:
    """The target, and its whole table with what the targets file says of a ``name`` in it.

    Raises SpecError with every fault, PluginError for a scheduler that is missing or does not work.
    """
    point, unnamed = NamedTargets().apply(Point(tables={"target": dict(table)}, written=Written()))
    whole = point.tables["target"]
    faults = list(unnamed)
    checked = check_target(whole, faults)
    options = None
    if checked is not None:
        own = {name: value for name, value in whole.items() if name not in TARGET_KEYS}
        scheduler = pool.scheduler(checked.scheduler)
        options, wrong = check_options(own, scheduler.options, "target", TARGET_KEYS)
        faults += wrong if options is not None else [*wrong, *place_faults(checked)]
    if checked is None or faults:
        raise SpecError(*map(point.written.locate, faults))
    return assemble_target(checked, pool.scheduler(checked.scheduler), options), whole
