"""Redaction of records that keeps them verifiable: no word is replaced that llmb needs to read them again."""

from collections.abc import Mapping, Sequence

import attrs

from llmb.plugins.registry import PluginRegistry
from llmb.reports.recompute_and_compare import find_mismatches
from llmb.reports.redact import Redactor, create_redactor
from llmb.values.errors import LlmbError


def redact_records(files: Mapping[str, bytes], run_ids: Sequence[str], registry: PluginRegistry) -> dict[str, bytes]:
    """Return the files of records without names, and check that the records still give the same results.

    A name without which the records give other results is replaced only where it is surely a name. Raise LlmbError if
    that does not suffice, or leaves a name.
    """
    check = _Check(files, run_ids, registry)
    redactor = create_redactor(files)
    while check.breaks(redacted := redactor.redact_files(files)):
        name = _find_offending(redactor, check)
        if name in redactor.ambiguous:
            raise LlmbError(_describe(name.decode(), "without it, the records cannot be verified"))
        redactor = attrs.evolve(redactor, ambiguous=redactor.ambiguous | {name})
    if redactor.ambiguous and (leaks := redactor.find_leaks(redacted)):
        raise LlmbError(_describe(leaks[0], "some of its places look like that word"))
    return redacted


class _Check:
    """Comparison of redacted records with the results of the original ones."""

    def __init__(self, files: Mapping[str, bytes], run_ids: Sequence[str], registry: PluginRegistry) -> None:
        self.files, self._run_ids, self._registry = files, run_ids, registry
        self._known: int | None = None

    def breaks(self, redacted: Mapping[str, bytes]) -> bool:
        """Check whether redacted records have more mismatches than the original ones."""
        found = self._count(redacted)
        if found and self._known is None:
            self._known = self._count(self.files)
        return found > (self._known or 0)

    def _count(self, files: Mapping[str, bytes]) -> int:
        """Return the number of mismatches. An error, such as that of a missing plugin, counts more than any."""
        try:
            return len(find_mismatches(files, self._run_ids, self._registry))
        except LlmbError:
            return len(self._run_ids) * 1000


def _find_offending(redactor: Redactor, check: _Check) -> bytes:
    """Return a name whose replacement changes the results, by bisection."""
    names = sorted(redactor.words)
    low, high = 0, len(names)  # the first `low` names change nothing, the first `high` do
    while high - low > 1:
        middle = (low + high) // 2
        some = {name: redactor.words[name] for name in names[:middle]}
        breaks = check.breaks(attrs.evolve(redactor, words=some).redact_files(check.files))
        low, high = (low, middle) if breaks else (middle, high)
    return names[high - 1]


def _describe(name: str, reason: str) -> str:
    advice = "rename it in the files of the record, or write the bundle without --redact"
    return f"--redact cannot replace the name {name!r}, which is also a word that llmb reads: {reason}; {advice}"
