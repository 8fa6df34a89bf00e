"""Entry points in a group whose name resembles one of llmb's. llmb does not read them."""

from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata

from llmb.plugins.installed_names import GROUPS
from llmb.values.texts.nearest_name import nearest_name


def find_misspelt_groups() -> Iterator[tuple[metadata.Distribution, metadata.EntryPoint, str]]:
    """Yield each entry point in a misspelt group, with its distribution and the group that was probably meant.

    A distribution with unreadable metadata is skipped.
    """
    for distribution in metadata.distributions():
        with suppress(Exception):  # importlib.metadata raises whatever its parsers raise
            for point in distribution.entry_points:
                if point.group not in GROUPS and (meant := nearest_name(point.group, GROUPS)):
                    yield distribution, point, meant
