"""Secrets in logs, replaced by as many asterisks while logs are copied.

The size of a copy is the offset up to which its log was read, so masking never changes the number of bytes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from llmb.values.variable_names import SECRET_NAME

SHORTEST = 6
"""The least bytes of a value that is masked. Shorter values occur in any log."""

LONGEST_TOKEN = 512
"""The most bytes of a token that is recognized by its shape."""

SHAPES = (b"hf_", b"nvapi-", b"ghp_", b"gho_", b"ghs_", b"github_pat_", b"glpat-", b"xoxb-", b"xoxp-")
"""The beginnings of tokens of Hugging Face, NVIDIA, GitHub, GitLab and Slack."""

_TOKEN_BYTES = rb"[A-Za-z0-9_-]"
_TOKEN = re.compile(rb"(?:%s)%s{16,%d}" % (b"|".join(SHAPES), _TOKEN_BYTES, LONGEST_TOKEN))
_UNFINISHED = re.compile(rb"(?:%s)%s{0,%d}\Z" % (b"|".join(SHAPES), _TOKEN_BYTES, LONGEST_TOKEN - 1))


class SecretMask:
    """A mask for known ``values``, however a shell, JSON or a URL writes them, and for tokens of known shapes."""

    def __init__(self, values: Iterable[str]) -> None:
        known = {written.encode() for value in values for written in _spellings(value)}
        self._known = sorted((each for each in known if len(each) >= SHORTEST), key=len, reverse=True)
        self._values = re.compile(b"|".join(map(re.escape, self._known)) or rb"(?!)")  # else a pattern without matches

    def mask(self, data: bytes, *, is_last: bool = False) -> bytes:
        """Return data with every secret masked, without a possible beginning of a secret at its end.

        If ``is_last``, no more data follows, so that the end is returned, too.
        """
        end = self._certain_end(data)
        masked = _TOKEN.sub(_stars, self._values.sub(_stars, data))
        if not is_last:
            return masked[:end]
        rest = len(data) - end
        return masked[:end] + (b"*" * rest if rest >= SHORTEST else masked[end:])

    def _certain_end(self, data: bytes) -> int:
        """Return the offset from which data may be the beginning of a secret. It is not within a masked secret."""
        starts = [len(data) - size for size in self._overlaps(data)]
        if unfinished := _UNFINISHED.search(data, max(0, len(data) - LONGEST_TOKEN)):
            starts.append(unfinished.start())
        end = min(starts, default=len(data))
        masked = [*self._values.finditer(data), *_TOKEN.finditer(self._values.sub(_stars, data))]
        return min((each.start() for each in masked if each.start() < end < each.end()), default=end)

    def _overlaps(self, data: bytes) -> Iterator[int]:
        """Yield the size of the longest end of data that begins each secret, if there is one."""
        for secret in (*self._known, *SHAPES):
            sizes = range(min(len(secret) - 1, len(data)), 0, -1)
            yield next((size for size in sizes if data.endswith(secret[:size])), 0)


def _stars(found: re.Match[bytes]) -> bytes:
    return b"*" * len(found[0])


def known_secrets(names: Iterable[str]) -> list[str]:
    """Return the values of these environment variables, and of all others whose names are those of secrets."""
    declared = set(names)
    return [value for name, value in os.environ.items() if name in declared or SECRET_NAME.search(name)]


def _spellings(value: str) -> Iterator[str]:
    """Yield a value as it is, line by line, and as a shell, JSON and a URL write it."""
    yield value
    yield from value.splitlines()
    yield from (shlex.quote(value), json.dumps(value)[1:-1], quote(value, safe=""))


def mask_secrets(text: str) -> str:
    """Return a text with the values of this process's secret variables, and tokens of known shapes, masked."""
    masked = SecretMask(known_secrets(())).mask(text.encode(errors="surrogateescape"), is_last=True)
    return masked.decode(errors="surrogateescape")
