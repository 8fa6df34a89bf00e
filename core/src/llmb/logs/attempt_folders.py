"""Folders of a launcher that restarts processes, one for each of their logs: ``LAUNCHER/attempt_0/LOCAL_RANK``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_LOG = re.compile(r"(?P<launcher>.*/|)attempt_(?P<attempt>\d+)/(?P<local_rank>\d+)/std(?:out|err)\.log")


def ranks_of_folders(paths: Iterable[Path]) -> dict[Path, int]:
    """Return the ranks of logs in such folders: the local ranks, if one launcher started all processes.

    With several launchers, one on each node, a local rank is not a rank, so no rank is known.
    """
    logs = _match_folders(paths)
    launchers = {log["launcher"] for log in logs.values()}
    return {path: int(log["local_rank"]) for path, log in logs.items()} if len(launchers) == 1 else {}


def earlier_attempts(paths: Iterable[Path]) -> set[Path]:
    """Return the logs of attempts after which the launcher started all processes again."""
    logs = _match_folders(paths)
    last: dict[str, int] = {}
    for log in logs.values():
        last[log["launcher"]] = max(int(log["attempt"]), last.get(log["launcher"], 0))
    return {path for path, log in logs.items() if int(log["attempt"]) < last[log["launcher"]]}


def _match_folders(paths: Iterable[Path]) -> Mapping[Path, re.Match[str]]:
    return {path: match for path in paths if (match := _LOG.fullmatch(path.as_posix()))}
