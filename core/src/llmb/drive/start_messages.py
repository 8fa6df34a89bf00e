"""Messages about what llmb does before runs are followed, so that a user always sees the reason of a pause."""

from llmb.drive.target_group import TargetGroup


def ignore_activity(activity: str) -> None:
    """Show nothing."""


def describe_probe(group: TargetGroup) -> str:
    """Return what the first command on a target does."""
    return f"connecting to {group.name}" if group.remote else f"checking {group.name}"
