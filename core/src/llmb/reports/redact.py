"""Replacement of host names, user names and addresses in the files of a record."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby

import attrs

from llmb.reports.names_and_addresses_to_redact import (
    ATTEMPT_USERS,
    LOGGED_HOSTS,
    find_names,
    find_paths,
    find_words,
    names_of_this_machine,
    read_documents,
)

NOT_IN_NAME = "A-Za-z0-9_-"
SHORTEST = 2
"""The least characters of a name that is replaced. Shorter ones occur in any word."""

NUMBER = re.compile(rb"\d[\d_.eE+-]*")

NAMED_LINES = (*LOGGED_HOSTS, *ATTEMPT_USERS)
"""Lines whose first group is a name."""

LABEL = (
    rb"(?i:host(?:name)?s?|user(?:name)?|logname|node(?:name|list)?s?|addr)[\"']?[ \t]*[=:][ \t]*"
    rb"|(?m:^\[target\]\n(?:\w.*\n){0,9}name = )"
)
"""The end of a key whose value is a host or a user, such as ``host: `` and ``MASTER_ADDR=``, or the target's name."""

LIST = rb"\[(?:[^\[\]]{0,65000}+\[){0,3}[^\[\]]{0,65000}+\]"
"""A list up to its first closing bracket. The search passes at most three inner opening brackets, so that an unclosed
list takes little time.
"""


@attrs.frozen(kw_only=True)
class Redactor:
    """Replaces names by numbered words, such as ``host-1``: the same name by the same word in all files.

    ``words`` has the word for each name. The names in ``ambiguous`` are also words that llmb reads, such as h100. They
    are replaced only where they are surely names: in a path of a user, beside an @, after a key such as ``host``, and
    in lines that name a host. ``paths`` are those of the records.
    """

    words: Mapping[bytes, bytes]
    ambiguous: frozenset[bytes]
    paths: frozenset[str] = frozenset()

    @cached_property
    def _everywhere(self) -> re.Pattern[bytes]:
        begin = rb"(?:(?<![%s])|(?<=stepd-))" % NOT_IN_NAME.encode()  # a daemon of job steps may name its node so
        return re.compile(begin + _any_of(self.words.keys() - self.ambiguous))

    @cached_property
    def _as_name(self) -> re.Pattern[bytes]:
        name = _any_of(self.ambiguous & self.words.keys())
        before = [rb"/home/", rb"/Users/", rb"@", rb"~", rb"stepd-", *self._paths_before_names()]
        begin = b"|".join(rb"(?<=%s)" % each for each in before)
        return re.compile(rb"(?:%s)%s|(?<![%s])%s(?=@\w)" % (begin, name, NOT_IN_NAME.encode(), name))

    @cached_property
    def _labelled(self) -> re.Pattern[bytes]:
        name = _any_of(self.ambiguous & self.words.keys())
        words = _any_of(each for each in self.ambiguous & self.words.keys() if not NUMBER.fullmatch(each))
        values = rb"%s|[\"']%s(?=[\"':])|%s" % (LIST, name, words)
        return re.compile(rb"(%s)(%s)" % (LABEL, values))

    def redact(self, data: bytes) -> bytes:
        """Return data without the names."""
        if self.ambiguous:
            data = self._as_name.sub(lambda found: self.words[found[0]], data)
            data = self._labelled.sub(lambda found: found[1] + self._replace_listed(found[2]), data)
            for pattern in NAMED_LINES:
                data = pattern.sub(self._replace_group, data)
        return self._everywhere.sub(lambda found: self.words[found[0]], data)

    def redact_files(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return files without the names. Of their paths, only the names of the files may contain names."""
        return {self._redact_path(path): self.redact(data) for path, data in files.items()}

    def find_leaks(self, redacted: Mapping[str, bytes]) -> list[str]:
        """Return the names that redacted files still name."""
        found = {name.encode() for names in find_names(redacted).values() for name in names}
        return sorted(name.decode() for name in (found & self.words.keys()) - set(self.words.values()))

    def _redact_path(self, path: str) -> str:
        folder, slash, name = path.rpartition("/")
        return f"{folder}{slash}{self._everywhere.sub(lambda found: self.words[found[0]], name.encode()).decode()}"

    def _paths_before_names(self) -> set[bytes]:
        """Return the beginnings of paths of records that end before an ambiguous name."""
        found = set()
        for path in self.paths:
            parts = path.encode().split(b"/")
            ends = [number for number, part in enumerate(parts) if number and part in self.ambiguous]
            found |= {re.escape(b"/".join(parts[:number]) + b"/") for number in ends}
        return found - {b"/"}

    def _replace_listed(self, value: bytes) -> bytes:
        return re.sub(rb"[\w.-]+", lambda found: self.words.get(found[0], found[0]), value)

    def _replace_group(self, found: re.Match[bytes]) -> bytes:
        """Return a line with the word for the name that is its first group."""
        start, end = found.start(1) - found.start(), found.end(1) - found.start()
        return found[0][:start] + self.words.get(found[1], found[1]) + found[0][end:]


def create_redactor(files: Mapping[str, bytes]) -> Redactor:
    """Return a redactor of the names in files of records, and of the names of this machine and its user."""
    documents, own = read_documents(files), names_of_this_machine()
    words: dict[bytes, bytes] = {}
    for kind, names in find_names(files).items():
        known = sorted(name for name in names | own.get(kind, set()) if len(name) >= SHORTEST)
        words |= {name.encode(): f"{kind}-{number}".encode() for number, name in enumerate(known, 1)}
    reserved = find_words(documents)
    ambiguous = {name for name in words if name.decode().lower() in reserved or NUMBER.fullmatch(name)}
    addresses = {name for name in ambiguous if words[name].startswith((b"ip-", b"email-"))}
    return Redactor(words=words, ambiguous=frozenset(ambiguous - addresses), paths=frozenset(find_paths(documents)))


def _any_of(names: Iterable[bytes]) -> bytes:
    """Return a pattern of any of these names that ends with the name. Of several, the longest one matches."""
    known = sorted(names)
    return rb"(?:%s)(?![%s])" % (_tree(known) if known else rb"(?!)", NOT_IN_NAME.encode())


def _tree(names: Sequence[bytes]) -> bytes:
    """Return a pattern of sorted names that has each common beginning once.

    `re` tries all alternatives at each byte of a log, and a job may have thousands of hosts.
    """
    first, last = names[0], names[-1]
    size = next((place for place, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1), len(first))
    rest = [name[size:] for name in names]
    branches = [_tree([*group]) for _, group in groupby(filter(None, rest), key=lambda name: name[:1])]
    optional = b"?" if branches and b"" in rest else b""
    return re.escape(first[:size]) + (b"(?:%s)%s" % (b"|".join(branches), optional) if branches else b"")
