"""Entry points in a group whose name resembles one of llmb's. llmb does not read them."""

from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata

import attrs

from llmb.plugins.installed_names import GROUPS
from llmb.values.texts.nearest_name import nearest_name


@attrs.frozen(kw_only=True)
class MisspeltGroup:
    """An entry point in a misspelt ``group``. ``meant`` is the group that was probably meant."""

    name: str
    distribution: str
    version: str
    group: str
    meant: str


def find_misspelt_groups() -> Iterator[MisspeltGroup]:
    """Yield the entry points in misspelt groups. A distribution with unreadable metadata is skipped."""
    for distribution in metadata.distributions():
        with suppress(Exception):  # importlib.metadata raises whatever its parsers raise
            for point in distribution.entry_points:
                meant = None if point.group in GROUPS else nearest_name(point.group, GROUPS)
                if meant and distribution.name:  # damaged metadata may lack the name
                    yield MisspeltGroup(
                        name=point.name,
                        distribution=distribution.name,
                        version=distribution.version or "without a version",
                        group=point.group,
                        meant=meant,
                    )
