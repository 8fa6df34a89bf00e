"""Runs that the tests of a framework plan for any number of nodes, whichever schedulers are installed."""

from collections.abc import Mapping
from typing import Any

from llmb.planning import RunPlan, plan
from llmb.spec.read_toml import read_document
from llmb.spec.resolve import resolve
from llmb.testing.any_scheduler import ContractRegistry, target_table
from llmb.values.errors import SpecError


def plan_tables(tables: Mapping[str, Mapping[str, Any]]) -> RunPlan:
    """Return the plan of a spec with one run. A scheduler that accepts every job replaces the table [target].

    Raise SpecError with the errors of the spec.
    """
    registry = ContractRegistry()
    workload, errors = resolve(read_document({**tables, "target": target_table()}), registry)
    if errors:
        raise SpecError(*errors)
    [run] = plan(workload, registry=registry)
    return run
