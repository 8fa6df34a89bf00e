"""Plugins as pip installs them: a working framework, scheduler or extension, with members added or replaced."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

RECIPE = """
release = "1"
description = "for tests"
source = "nothing"
flop_formula = "full"
window = "last"
steps = 5
time_limit = "1m"
[model]
layers = 2
hidden = 64
ffn = 128
heads = 4
query_groups = 4
vocab = 128
seq_len = 32
[[points]]
gpu_type = ["h100", "npu9"]
dtype = "bf16"
gpus = [1, 2]
global_batch_size = "2 * gpus"
"""

CODE = {
    "framework": """
class Plugin(FrameworkHooks[Options]):
    options = Options

    @hookimpl
    def parse_log(self):
        return LineParser()

    @hookimpl
    def build_job(self, run):
        return Job(
            id=run.id, directory=run.paths.run, phases=(Phase(name="train", command=("true",)),),
            nodes=1, tasks_per_node=1, gpus_per_node=1, env={}, files={}, time_limit_s=60,
        )
""",
    "scheduler": """
def script_of(job, text):
    logs = {phase.name: [f"{job.directory}/{phase.name}.log"] for phase in job.phases}
    return Script(id=job.id, directory=job.directory, text=text, logs=logs)

class Plugin(SchedulerHooks[Options]):
    options = Options
    single_node = True
    poll_interval_s = (0.01, 0.02)

    @hookimpl
    def build_job(self, job):
        return script_of(job, "exit 3")

    @hookimpl
    def submit(self, scripts, host):
        return submit_detached(scripts, host)

    @hookimpl
    def poll(self, handles, host):
        return poll_detached(handles, host)

    @hookimpl
    def cancel(self, handles, host):
        return cancel_detached(handles, host)
""",
    "extension": """
class Plugin(ExtensionHooks):
    @hookimpl
    def diagnose(self):
        return []
""",
}
IMPORTS = """
import os, sys, time
import attrs
from llmb import *
"""


class Plugins:
    """Installs plugins and writes specs that use them."""

    def __init__(self, site: Any, folder: Path) -> None:
        self.site = site
        self.folder = folder

    def install(
        self,
        kind: str,
        members: str = "",
        *,
        before: str = "",
        after: str = "",
        options: str = "word: str = 'x'",
        name: str = "odd",
        distribution: str = "",
        entry: str = ":Plugin",
        recipe: str = RECIPE,
        **metadata: Any,
    ) -> None:
        """Install a working plugin of this kind with these ``members`` in its class and ``options``.

        ``before`` and ``after`` are code around the class. A framework has one recipe, ``tiny``.
        """
        distribution = distribution or f"llmb-{name}"
        package = distribution.replace("-", "_")
        options_class = f"@attrs.frozen\nclass Options:\n{textwrap.indent(options, '    ')}\n"
        added = textwrap.indent(textwrap.dedent(members), "    ")
        code = "\n".join((IMPORTS, textwrap.dedent(before), options_class, CODE[kind], added, textwrap.dedent(after)))
        files = {f"{package}/__init__.py": code}
        if kind == "framework":
            files[f"{package}/recipes/tiny.toml"] = recipe
        points = {f"llmb.{kind}s": {name: package + entry}}
        self.site.install(distribution, files=files, entry_points=points, **metadata)

    def spec(
        self,
        *,
        framework: str = "odd",
        scheduler: str = "local",
        workload: Any = None,
        target: Any = None,
        options: Any = None,
    ) -> Path:
        """Write a spec with one run of the recipe ``tiny``; ``options`` is its [framework] table."""
        tables = {
            "workload": {"recipe": f"{framework}/tiny", "gpu_type": "h100", "dtype": "bf16", "gpus": 1}
            | (workload or {}),
            "framework": options or {},
            "target": {"scheduler": scheduler} | (target or {}),
        }
        file = self.folder / f"{framework}-{scheduler}.toml"
        file.write_text(tomli_w.dumps(tables))
        return file


@pytest.fixture
def plugins(site: Any, tmp_path: Path) -> Plugins:
    return Plugins(site, tmp_path)


@pytest.fixture
def one_line() -> Callable[[Any], str]:
    """Return the only line on standard error of a command that ended with exit code 2 and printed nothing else."""

    def read(done: Any) -> str:
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        return str(done.stderr.strip().removeprefix("llmb: "))

    return read
