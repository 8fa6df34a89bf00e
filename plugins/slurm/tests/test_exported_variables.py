"""Variables that the host of a Slurm cluster exports: sbatch does not pass them on, so llmb warns."""

from __future__ import annotations

import subprocess

import pytest

from llmb import FrozenMap, Job, Phase, Target
from llmb_slurm.options import SlurmOptions
from llmb_slurm.plugin import Slurm


def target(host: str | None, facts: dict[str, str] | None = None) -> Target[SlurmOptions]:
    options = SlurmOptions(runtime="none")
    return Target(
        scheduler="slurm", workdir="/w", host=host, options=options, gpu_types=("h100",), facts=FrozenMap(facts or {})
    )


def test_variables_of_the_login_node_are_found_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MELLANOX_VISIBLE_DEVICES", raising=False)
    env = {"PATH": "/usr/bin:/bin", "MELLANOX_VISIBLE_DEVICES": "all", "OTHER_NCCL_X": "1"}
    probe = Slurm().probe(target("eos"))
    printed = subprocess.run(["bash", "-c", probe], env=env, capture_output=True, text=True, check=True).stdout
    facts = dict(line.split("=", 1) for line in printed.splitlines() if line.startswith("exported."))
    assert facts == {"exported.MELLANOX_VISIBLE_DEVICES": "all"}
    job = Job(
        id="a",
        directory="/w/a",
        phases=(Phase(name="train", command=("true",)),),
        nodes=1,
        tasks_per_node=1,
        gpus_per_node=0,
        time_limit_s=60,
    )
    [note] = Slurm().build_job(job, target("eos", facts)).notes
    assert note.splitlines()[1:] == ["[target.env]", 'MELLANOX_VISIBLE_DEVICES = "all"']


def test_this_machine_needs_no_probe() -> None:
    assert Slurm().probe(target(None)) == ""
