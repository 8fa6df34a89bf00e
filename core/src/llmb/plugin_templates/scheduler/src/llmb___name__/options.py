"""Options of the scheduler: its own keys of the spec's [target] table."""

import attrs
from llmb import PositiveInt


@attrs.frozen(kw_only=True)
class Options:
    """Options in [target]. A field without a default is required. Every field has a description below it."""

    grace_s: PositiveInt = 10
    """Seconds between SIGTERM and SIGKILL. Example: ``30``"""
