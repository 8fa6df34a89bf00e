"""Secrets in logs, replaced by as many asterisks while logs are copied.

The size of a copy is the offset up to which its log was read, so masking never changes the number of bytes.

A log is masked in blocks. If a block may end within a secret, only the part before that secret is returned. The rest is
masked with the next block. With the secret ``s3cret-value``, the blocks "token: s3cr" and "et-value ok" become
"token: " and "************ ok".
"""

import json
import os
import re
import shlex
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from llmb.logs.search_many_texts import MAX_TOGETHER, search_for
from llmb.records.log_copies.mask_cut_lines import SHORTEST, CutLines, begin_of_unfinished_line
from llmb.records.log_copies.token_shapes import CUT_OFF, ENDS_IN_WORD, LONGEST_MATCH_BYTES, TOKENS, UNFINISHED
from llmb.values.secret_names import SECRET_NAME

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Control characters, which are blanks in the last output of a detached job."""

_IN_DOUBLE_QUOTES = re.compile(r'["$`\\]')
"""Characters before which bash writes a backslash in double quotes."""

_OUTSIDE_QUOTES = re.compile(r"^[#~]|[ !\"$&'()*,;<>?\[\\\]^`{|}]")
"""Characters before which bash writes a backslash outside quotes."""


_PERCENT = re.compile("%[0-9A-F]{2}")
"""A byte in a URL. Some programs write it in lower case."""

_IN_URLS = str.maketrans("+/", "-_")
"""The characters of base64 that differ in URLs and file names."""


class SecretMask:
    """A mask for known ``values`` as other programs write them, for tokens and for passwords in URLs.

    The values of a shell, JSON, Python, a URL and base64 are masked, and parts of them in lines that a launcher cut.
    """

    def __init__(self, values: Iterable[str]) -> None:
        known = {written.encode(errors="surrogateescape") for value in values for written in _spellings(value)}
        self._known = sorted((each for each in known if len(each) >= SHORTEST), key=len, reverse=True)
        self._values = re.compile(b"|".join(map(re.escape, self._known)))
        self._search_texts = (*self._known, *TOKENS)
        self._cut_lines = CutLines(self._known)

    def mask(self, data: bytes, *, is_last: bool = False) -> bytes:
        """Return data with every secret masked, without a possible beginning of a secret at its end.

        If ``is_last``, no more data follows, so that the end is returned, too.
        """
        end = _begin_of_unfinished_secret(data, self._known, CUT_OFF) if is_last else self._uncertain_begin(data)
        spans: list[tuple[int, int]] = []
        for secret in self._present(data):
            for found in secret.finditer(data):  # a value may be within a token
                spans.append(found.span(found.re.groups))
                if found.start() < end < found.end():
                    end = found.start()
        kept = len(data) if is_last else end
        masked = bytearray(self._cut_lines.mask(data[:kept]))  # the part of a token in a cut line has a token's shape
        for start, stop in spans:
            if start < kept:
                masked[start:stop] = b"*" * (min(stop, kept) - start)
        if is_last and kept - end >= SHORTEST:
            masked[end:] = b"*" * (kept - end)
        return bytes(masked)

    def mask_text(self, text: str) -> str:
        """Return a complete text with every secret masked."""
        return self.mask(text.encode(errors="surrogateescape"), is_last=True).decode(errors="surrogateescape")

    def _uncertain_begin(self, data: bytes) -> int:
        """Return the offset at which a secret may begin that more data continues, or the end of data.

        One byte of a word before it counts too, because the next block needs it to recognize the word.
        """
        begin = _begin_of_unfinished_secret(data, self._search_texts, UNFINISHED)
        begin = min(begin, begin_of_unfinished_line(data))
        return begin - 1 if ENDS_IN_WORD.search(data, max(0, begin - 1), begin) else begin

    def _present(self, data: bytes) -> Iterator[re.Pattern[bytes]]:
        """Yield the secrets of which data has a part. Most blocks have none, which one search shows."""
        if not search_for(self._search_texts, MAX_TOGETHER).find_all(data):
            return
        if any(value in data for value in self._known):
            yield self._values
        yield from (token for prefix, token in TOKENS.items() if prefix in data)


def _begin_of_unfinished_secret(data: bytes, secrets: Iterable[bytes], unfinished: re.Pattern[bytes]) -> int:
    """Return the offset at the end of data at which one of these secrets or patterns begins, or the end of data."""
    begin = len(data) - max((_overlap(data, secret) for secret in secrets), default=0)
    found = unfinished.search(data, max(0, len(data) - LONGEST_MATCH_BYTES - len(b"://")))
    return min(begin, found.start()) if found else begin


def _overlap(data: bytes, secret: bytes) -> int:
    """Return the size of the longest end of data that begins the secret."""
    end = data[-len(secret) + 1 :] if len(secret) > 1 else b""
    begin = end.find(secret[:1])
    while begin >= 0 and not secret.startswith(end[begin:]):
        begin = end.find(secret[:1], begin + 1)
    return len(end) - begin if begin >= 0 else 0


def known_secrets(names: Iterable[str]) -> list[str]:
    """Return the values of these environment variables, and of all others whose names are those of secrets."""
    declared = set(names)
    return [value for name, value in os.environ.items() if name in declared or SECRET_NAME.search(name)]


def _spellings(value: str) -> Iterator[str]:
    """Yield a value, its lines, with blanks for control characters, and as shells and other programs write it."""
    yield value
    yield from value.splitlines()
    yield _CONTROL.sub(" ", value)  # the last output of a running job
    yield from (shlex.quote(value), repr(value)[1:-1])
    yield from (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    data = value.encode(errors="surrogateescape")  # a variable may contain any bytes
    for written in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield from (written, _PERCENT.sub(lambda code: code[0].lower(), written))
    if len(data) >= SHORTEST:
        yield from _in_base64(data)
    yield value.replace("'", r"'\''")  # set, set -x
    yield _IN_DOUBLE_QUOTES.sub(r"\\\g<0>", value)  # export -p
    yield _OUTSIDE_QUOTES.sub(r"\\\g<0>", value)  # printf %q


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the base64 of a value alone and within other data, such as ``user:`` of an Authorization header."""
    for before in range(3):
        text = b64encode(bytes(before) + data).decode().rstrip("=")
        begin, end = (8 * before + 5) // 6, 8 * (before + len(data)) // 6  # other data determines the rest, too
        for part in (text[begin:], text[begin:end]):
            yield from (part, part.translate(_IN_URLS))


def mask_secrets(text: str) -> str:
    """Return a text with the values of this process's secret variables, and tokens of known shapes, masked."""
    return SecretMask(known_secrets(())).mask_text(text)
