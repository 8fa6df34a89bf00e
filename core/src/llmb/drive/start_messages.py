"""Messages about what llmb does before runs are followed, so that a user always sees the reason of a pause."""

from collections.abc import Sized

from llmb.drive.target_group import TargetGroup


def ignore_activity(activity: str) -> None:
    """Show nothing."""


def describe_probe(group: TargetGroup) -> str:
    """Return what the first command on a target does."""
    return f"connecting to {group.name}" if group.remote else f"checking {group.name}"


def count_runs(runs: Sized) -> str:
    """Return a number of runs as text."""
    return f"{len(runs):,} run{'' if len(runs) == 1 else 's'}"
