"""Events as sentences."""

from __future__ import annotations

import llmb


def describe_notice(event: llmb.Event) -> str:
    """Return the sentence in an event that concerns more than one run, or an empty string."""
    match event:
        case llmb.Note(text=text):
            return text
        case llmb.TargetLost(reason=reason):
            return f"{reason}; retrying (jobs there continue)"
        case llmb.TargetBack(target=target):
            return f"{target} responds again"
    return ""


def describe_skipped(event: llmb.Skipped) -> str:
    """Return one line: the run, and the beginning of the error. The complete error is raised at the end."""
    return f"{event.run_id}: skipped, {event.reason.removeprefix(f'{event.run_id}: ').partition(chr(10))[0]}"
