"""Failure signatures of Slurm, pyxis and enroot, for the logs of all jobs, including jobs without a record."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable

from llmb import ExtensionHooks, Signature, hookimpl, resource_text


class SlurmSignatures(ExtensionHooks):
    """Extension that adds the signatures to every run, independent of its framework."""

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the signatures of failure_signatures.toml."""
        tables = tomllib.loads(resource_text("llmb_slurm", "failure_signatures.toml"))["signatures"]
        return tuple(Signature(**table) for table in tables)
