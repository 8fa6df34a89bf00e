"""The contract that every scheduler passes."""

from __future__ import annotations

from llmb.testing import SchedulerContract


class TestSlurm(SchedulerContract):
    scheduler = "slurm"
