"""Shapes of tokens and of passwords in URLs, by which they are recognized although their values are unknown."""

import re

LONGEST_TOKEN = 512
"""The most bytes of a token that is recognized by its shape."""

_WORD = rb"[A-Za-z0-9_-]"
_REST = rb"%s{16,%d}" % (_WORD, LONGEST_TOKEN)
_SHAPES = {
    **dict.fromkeys((b"hf_oauth_", b"hf_jwt_"), _REST),  # Hugging Face
    **dict.fromkeys((b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"), _REST),
    **dict.fromkeys((b"dckr_pat_", b"dckr_oat_"), _REST),  # of a registry of images: of a user, of an organization
    **dict.fromkeys((b"nvapi-", b"glpat-", b"xoxb-", b"xoxp-"), _REST),
    **dict.fromkeys((b"sk-proj-", b"sk-ant-", b"sk-svcacct-"), _REST),  # OpenAI, Anthropic
    b"pypi-AgE": _REST,  # PyPI
}
"""Beginnings of tokens that no other text has, each with the rest of the token as a regular expression.

Sources: the publishers' pages on tokens.
"""

_AMBIGUOUS_SHAPES = {
    # Hugging Face and GitHub, but not names such as hf_model_to_local_model
    **dict.fromkeys((b"hf_", b"github_pat_"), rb"[A-Za-z0-9]{16}%s{0,%d}" % (_WORD, LONGEST_TOKEN - 16)),
    b"wandb_v1_": _REST,  # 77 characters, accepted since wandb 0.22.3
    b"sk-": rb"%s{32,%d}" % (_WORD, LONGEST_TOKEN),  # older keys of OpenAI, and others
    b"AIza": _WORD + rb"{35}(?!%s)" % _WORD,  # API keys of Google, which have 39 characters
    b"npm_": rb"[A-Za-z0-9]{36}(?!%s)" % _WORD,
    **dict.fromkeys((b"AKIA", b"ASIA"), rb"[A-Z0-9]{16}(?![A-Za-z0-9])"),  # ids of AWS keys, which have 20 characters
}
"""Beginnings of tokens that ordinary words also have, each with the rest of the token as a regular expression.

Only a whole token is masked, because the beginning alone may be that of a word.
"""

_LONGEST_USER = 128
_AUTHORITY = rb'[^\s/?#"<>]'
_USER = rb'[^\s/?#"<>:@]{0,%d}' % _LONGEST_USER
_URL = {b"://": re.compile(rb"://%s:(%s{1,%d})@" % (_USER, _AUTHORITY, LONGEST_TOKEN))}
"""The password in a URL, such as that of a proxy. It ends at the last @ before the path (RFC 3986, section 3.2)."""


def _begin(prefix: bytes) -> bytes:
    """Return the expression for the beginning of a token. ``sk-`` within a word, such as task-1, begins no token."""
    return prefix + (rb"(?<!%s.{%d})" % (_WORD, len(prefix)) if prefix.startswith(b"sk-") else b"")


TOKENS = {prefix: re.compile(_begin(prefix) + rest) for prefix, rest in (_SHAPES | _AMBIGUOUS_SHAPES).items()} | _URL
"""The expressions of whole tokens by the text that each contains. A group, if any, is the part to mask."""

LONGEST_MATCH_BYTES = _LONGEST_USER + 1 + LONGEST_TOKEN
"""The most bytes after the text of an expression: a user, a colon and a password."""

UNFINISHED = re.compile(
    rb"(?:(?:%s)%s{0,%d}|://%s{0,%d})\Z"
    % (b"|".join(_SHAPES | _AMBIGUOUS_SHAPES), _WORD, LONGEST_TOKEN - 1, _AUTHORITY, LONGEST_MATCH_BYTES)
)
"""What the next block may complete to a token."""

CUT_OFF = re.compile(rb"(?:%s)%s{0,%d}\Z" % (b"|".join(map(_begin, _SHAPES)), _WORD, LONGEST_TOKEN - 1))
"""The beginning of a token at the end of a log, such as that of a program that was killed."""

ENDS_IN_WORD = re.compile(_WORD + rb"\Z")
