"""What `llmb doctor` makes of what the probe found."""

from __future__ import annotations

import time
from typing import Any

import pytest

from llmb import DoctorCheck, FrozenMap, Target
from llmb.hosts.local import LocalHost
from llmb_slurm.options import SlurmOptions
from llmb_slurm.plugin import Slurm

FACTS = {
    "slurm": "slurm-wlm 22.05.8",
    "default_partition": "batch",
    "partition.batch": "up|1-00:00:00|4|gpu:h100:8",
    "partition.cpu": "up|infinite|2|(null)",
    "partition.old": "inact|1:00:00|1|gpu:a100:8",
    "accounts": "proj1,proj2",
    "pyxis": "yes",
    "enroot": "/usr/bin/enroot",
}


def found(facts: dict[str, str] | None = None, **options: Any) -> dict[str, DoctorCheck]:
    merged = {**FACTS, "clock": str(int(time.time())), **(facts or {})}
    present = FrozenMap({key: value for key, value in merged.items() if value is not None})
    target = Target(scheduler="slurm", workdir="/w", options=SlurmOptions(**options), facts=present)
    return {each.name: each for each in Slurm().checks(target, LocalHost())}


@pytest.fixture(autouse=True)
def _no_defaults_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SBATCH_PARTITION", "SLURM_PARTITION"):
        monkeypatch.delenv(name, raising=False)


def test_all_is_well() -> None:
    checks = found()
    assert all(check.ok for check in checks.values()), checks
    assert checks["Slurm"].detail == "slurm-wlm 22.05.8"
    assert checks["partition"].detail == "batch: 4 nodes, gpu:h100:8, at most 1-00:00:00"
    assert set(checks) == {"Slurm", "partition", "account", "pyxis", "enroot", "clock"}


@pytest.mark.parametrize(
    ("facts", "options", "name", "detail", "remedy"),
    [
        ({"slurm": ""}, {}, "Slurm", "its commands are not there", "target.host"),
        ({"unreachable": "Unable to contact"}, {}, "Slurm", "Unable to contact", "wait"),
        ({}, {"partition": "nosuch"}, "partition", "nosuch is not there", "batch, cpu, old"),
        ({"default_partition": ""}, {}, "partition", "no default partition", "set target.partition"),
        ({}, {"partition": "old"}, "partition", "old: 1 nodes", "old is not up"),
        ({}, {"partition": "cpu"}, "partition", "no GPUs that Slurm knows of", 'target.gpu_request = "none"'),
        ({}, {"account": "nosuch"}, "account", "nosuch is none of yours", "proj1, proj2"),
        ({"pyxis": "no"}, {}, "pyxis", "takes no container images", "target.runtime"),
        ({"clock": str(int(time.time()) - 3600)}, {}, "clock", "differs by ", "clocks"),
        ({"clock": ""}, {}, "clock", "could not be read", "date"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told_with_what_to_do(
    facts: dict[str, str], options: dict[str, Any], name: str, detail: str, remedy: str
) -> None:
    check = found(facts, **options)[name]
    assert not check.ok
    assert detail in check.detail
    assert remedy in check.remedy


def test_without_containers_nothing_is_said_of_them() -> None:
    assert not {"pyxis", "enroot"} & set(found({"pyxis": "no"}, runtime="venv"))


def test_a_cpu_partition_is_fine_where_no_gpus_are_asked_for() -> None:
    assert found(partition="cpu", gpu_request="none")["partition"].ok


@pytest.mark.parametrize(
    ("facts", "told"),
    [({"slurm": ""}, {"Slurm", "clock"}), ({"unreachable": "no"}, {"Slurm", "pyxis", "enroot", "clock"})],
)
def test_nothing_is_called_well_that_cannot_be_known(facts: dict[str, str], told: set[str]) -> None:
    assert set(found(facts)) == told
