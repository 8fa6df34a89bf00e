"""Runs that the tests of a framework plan for any number of nodes, whichever schedulers are installed."""

from collections.abc import Mapping
from typing import Any

from llmb.api import load
from llmb.planning import RunPlan, plan
from llmb.testing.any_scheduler import ContractRegistry, target_table
from llmb.values.errors import Fault, SpecError


def plan_tables(tables: Mapping[str, Mapping[str, Any]]) -> RunPlan:
    """Return the plan of a spec with one run. A scheduler that accepts every job replaces the table [target].

    Raise SpecError with the errors of the spec, or if lists make several runs of it.
    """
    registry = ContractRegistry()
    workload = load({**tables, "target": target_table()}, registry=registry)
    if (count := len(workload.runs)) != 1:
        raise SpecError(Fault(message=f"the tables make {count} runs", expected="one value instead of each list"))
    [run] = plan(workload, registry=registry)
    return run
