"""Causes of failure that Slurm, pyxis and enroot tell, for the logs of any job, also of one that is not llmb's."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable

from llmb import ExtensionHooks, Signature, hookimpl, resource_text


class SlurmCauses(ExtensionHooks):
    """Adds them to every run, whatever its framework."""

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """The table of ``causes.toml``."""
        tables = tomllib.loads(resource_text("llmb_slurm", "causes.toml"))["signatures"]
        return tuple(Signature(**table) for table in tables)
