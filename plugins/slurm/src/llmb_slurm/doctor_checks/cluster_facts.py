"""Facts of a cluster that several checks of ``llmb doctor`` read: partitions, their settings, and the account."""

import re
from collections.abc import Mapping

from llmb import Target
from llmb_slurm.options import SlurmOptions


def partitions(target: Target[SlurmOptions]) -> list[str]:
    """Return the names of the partitions in which Slurm may start the jobs."""
    facts = target.facts
    return (target.options.partition or facts.get("login_partition") or facts.get("default_partition", "")).split(",")


def must_fit_all(facts: Mapping[str, str]) -> bool:
    """Check whether sbatch rejects a job that exceeds the limits of one of its partitions."""
    return facts.get("config.EnforcePartLimits") == "ALL"


def stated_account(target: Target[SlurmOptions]) -> str:
    """Return the account of the spec, else that of the login, or "" for the user's default account."""
    return target.options.account or target.facts.get("login_account", "")


def split_list(text: str) -> list[str]:
    """Return the items of a list of Slurm, which commas separate."""
    return [each for each in text.split(",") if each]


def available_partitions(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of the partitions to propose, by name: those that are up and that the site shows to the user."""
    found = {key.partition(".")[2]: fact for key, fact in sorted(facts.items()) if key.startswith("partition.")}
    return {name: fact for name, fact in found.items() if fact.startswith("up|") and _is_shown(name, facts)}


def _is_shown(name: str, facts: Mapping[str, str]) -> bool:
    groups = partition_setting(facts, name, "AllowGroups") or "ALL"
    is_member = groups == "ALL" or not {*groups.split(",")}.isdisjoint(facts.get("groups", "").split())
    return is_member and partition_setting(facts, name, "Hidden") != "YES"


def partition_setting(facts: Mapping[str, str], partition: str, name: str) -> str:
    """Return a setting of a partition, or "" if it is unknown."""
    return setting_in(facts.get(f"settings.{partition}", ""), name)


def setting_in(line: str, name: str) -> str:
    """Return a value of ``scontrol -o show``, or "" if the line lacks it."""
    found = re.search(rf"(?:^|\s){name}=(\S*)", line)
    return found[1] if found else ""


def counted_nodes(number: int | str) -> str:
    """Return the number with its noun: "1 node", "2 nodes"."""
    return f"{number} node" if str(number) == "1" else f"{number} nodes"
