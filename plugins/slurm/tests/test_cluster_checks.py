"""Checks of a Slurm cluster for llmb doctor, from the facts of its probe."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llmb import DoctorCheck, FrozenMap, Script, Target
from llmb.hosts.local_host import LocalHost
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
    "mksquashfs": "/usr/bin/mksquashfs",
}


def found(facts: Mapping[str, str | None] | None = None, **options: Any) -> dict[str, DoctorCheck]:
    merged = {**FACTS, "clock": str(int(time.time())), **(facts or {})}
    present = FrozenMap({key: value for key, value in merged.items() if value is not None})
    target = Target(scheduler="slurm", workdir="/w", options=SlurmOptions(**options), facts=present)
    return {each.name: each for each in Slurm().checks(target, LocalHost(), ())}


@pytest.fixture(autouse=True)
def _no_defaults_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SBATCH_PARTITION", "SLURM_PARTITION"):
        monkeypatch.delenv(name, raising=False)


def test_a_healthy_cluster_passes_all_checks() -> None:
    checks = found()
    assert all(check.ok for check in checks.values()), checks
    assert checks["Slurm"].detail == "slurm-wlm 22.05.8"
    assert checks["partition"].detail == "batch: 4 nodes, gpu:h100:8, time limit 1-00:00:00"
    assert set(checks) == {"Slurm", "partition", "account", "pyxis", "enroot", "clock"}


@pytest.mark.parametrize(
    ("facts", "options", "name", "detail", "remedy"),
    [
        ({"slurm": ""}, {}, "Slurm", "commands are not installed", 'set `host = "'),
        ({"unreachable": "Unable to contact"}, {}, "Slurm", "Unable to contact", "try again later"),
        ({}, {"partition": "nosuch"}, "partition", "nosuch does not exist", "in [target], or to cpu"),
        ({"default_partition": ""}, {}, "partition", "no default partition", 'set `partition = "batch"` in [target]'),
        ({}, {"partition": "old"}, "partition", "old: 1 node,", "`sinfo -p old` reports it up, or set `partition"),
        ({}, {"partition": "cpu"}, "partition", "no GPUs known to Slurm", 'set `gpu_request = "none"` in [target]'),
        ({}, {"account": "nosuch"}, "account", "may not use the account nosuch", '`account = "proj1"` in [target]'),
        ({"pyxis": "no"}, {}, "pyxis", "does not support container images", '`runtime = "venv"`'),
        ({"clock": str(int(time.time()) - 3600)}, {}, "clock", "differs from the clock of this machine by ", "NTP"),
        ({"awk": ""}, {}, "awk", "not installed", "install gawk"),
        ({"mksquashfs": ""}, {}, "enroot", "mksquashfs is missing", "squashfs-tools"),
        ({"clock": ""}, {}, "clock", "cannot read the clock", "date"),
    ],
)  # fmt: skip
def test_a_failed_check_has_a_detail_and_a_remedy(
    facts: dict[str, str], options: dict[str, Any], name: str, detail: str, remedy: str
) -> None:
    check = found(facts, **options)[name]
    assert not check.ok
    assert detail in check.detail
    assert remedy in check.remedy


@pytest.mark.parametrize(
    ("slurm", "ok", "detail"),
    [
        ("slurm-wlm 22.05.8", False, "batch is only for accounts physics; yours: proj1"),
        ("slurm 23.02.7", None, "batch is only for accounts physics and accounts below them; yours: proj1"),
    ],
)
def test_an_account_may_be_below_one_of_the_partition(slurm: str, ok: bool | None, detail: str) -> None:
    closed = {"slurm": slurm, "settings.batch": "PartitionName=batch AllowAccounts=physics"}
    check = found(closed, account="proj1")["partition"]
    assert (check.ok, check.detail) == (ok, detail)


@pytest.mark.parametrize("partition", ["old,batch", "cpu,batch", "closed,batch", "batch,old"])
def test_one_of_several_partitions_suffices(partition: str) -> None:
    """Slurm 22.05 accepted such jobs, and started them in the other partition."""
    closed = {"partition.closed": FACTS["partition.batch"], "settings.closed": "AllowAccounts=physics"}
    check = found(closed, partition=partition, account="proj1")["partition"]
    assert (check.ok, check.detail) == (True, "batch: 4 nodes, gpu:h100:8, time limit 1-00:00:00")


def test_all_partitions_must_be_open_if_the_site_enforces_the_limits_of_all() -> None:
    closed = {"partition.closed": FACTS["partition.batch"], "settings.closed": "AllowAccounts=physics"}
    facts = {**closed, "config.EnforcePartLimits": "ALL"}
    check = found(facts, partition="batch,closed", account="proj1")["partition"]
    assert (check.ok, check.detail) == (False, "closed is only for accounts physics; yours: proj1")
    assert found(facts, partition="old,batch", account="proj1")["partition"].ok
    below = {"slurm": "slurm 23.02.7", "partition.maybe": FACTS["partition.batch"], "settings.maybe": "AllowAccounts=a"}
    facts |= {**below, "settings.closed": "AllowQos=high"}
    check = found(facts, partition="maybe,closed,batch", account="proj1", qos="low")["partition"]
    assert (check.ok, check.detail) == (False, "closed is only for qos high; yours: low")


def test_the_first_of_several_partitions_is_named_if_none_suffices() -> None:
    check = found(partition="old,cpu")["partition"]
    assert not check.ok
    assert check.detail.startswith("old: 1 node,")


def test_account_and_partition_of_the_login_are_checked_if_the_spec_names_none() -> None:
    """Jobs get them from SBATCH_ACCOUNT and SBATCH_PARTITION, which a profile of the site may set."""
    checks = found({"login_account": "nosuch", "login_partition": "old", "default_partition": ""})
    assert (
        checks["account"].detail == "you may not use the account nosuch (SBATCH_ACCOUNT or SLURM_ACCOUNT of the login)"
    )
    assert checks["partition"].detail.startswith("old: 1 node,")
    checks = found({"login_partition": "nosuch", "default_partition": ""})
    assert checks["partition"].detail == "nosuch does not exist (SBATCH_PARTITION of the login)"
    checks = found({"login_account": "nosuch", "login_partition": "old"}, account="proj1", partition="batch")
    assert checks["account"].ok
    assert checks["partition"].ok


def test_one_of_several_qos_suffices() -> None:
    """--qos may be a list in later releases of Slurm."""
    settings = {"settings.batch": "PartitionName=batch AllowQos=normal,high"}
    assert found(settings, qos="urgent,high")["partition"].ok
    assert not found(settings, qos="urgent")["partition"].ok


def test_the_case_of_an_account_is_ignored() -> None:
    checks = found({"settings.batch": "PartitionName=batch AllowAccounts=proj1"}, account="Proj1")
    assert checks["account"].ok
    assert checks["partition"].ok


@pytest.mark.parametrize(("accounts", "ok"), [("", True), (None, None)])
def test_accounts_that_slurm_does_not_report_are_not_checked(accounts: str | None, ok: bool | None) -> None:
    assert found({"accounts": accounts}, account="nosuch")["account"].ok is ok


def test_a_hidden_partition_can_be_used() -> None:
    hidden = {"partition.secret": "up|1:00:00|1|gpu:h100:8", "settings.secret": "AllowGroups=ALL Hidden=YES"}
    assert found(hidden, partition="secret")["partition"].ok


def test_the_partition_of_a_remedy_is_up_and_shown_to_the_user() -> None:
    facts = {
        "partition.a_down": "inact|1-00:00:00|4|gpu:h100:8",
        "partition.a_hidden": "up|1-00:00:00|4|gpu:h100:8",
        "settings.a_hidden": "PartitionName=a_hidden AllowGroups=ALL Hidden=YES",
        "partition.a_foreign": "up|1-00:00:00|4|gpu:h100:8",
        "settings.a_foreign": "PartitionName=a_foreign AllowGroups=staff,ops Hidden=NO",
        "groups": "me users",
    }
    for partition in ("nosuch", "cpu"):
        remedy = found(facts, partition=partition)["partition"].remedy
        assert "batch" in remedy
        assert not {"a_down", "a_hidden", "a_foreign", "old"} & set(remedy.replace(",", " ").replace('"', " ").split())


def test_a_login_node_without_enroot_has_no_result() -> None:
    check = found({"enroot": "", "mksquashfs": ""})["enroot"]
    assert (check.ok, check.remedy) == (None, "")
    assert "images are imported on a compute node, which needs enroot and mksquashfs" in check.detail


def test_container_checks_are_left_out_without_containers() -> None:
    assert not {"pyxis", "enroot"} & set(found({"pyxis": "no"}, runtime="venv"))


def test_a_cpu_partition_passes_if_no_gpus_are_requested() -> None:
    assert found(partition="cpu", gpu_request="none")["partition"].ok


@pytest.mark.parametrize(
    ("facts", "names"),
    [({"slurm": ""}, {"Slurm", "clock"}), ({"unreachable": "no"}, {"Slurm", "pyxis", "enroot", "clock"})],
)
def test_checks_that_need_slurm_are_left_out_without_it(facts: dict[str, str], names: set[str]) -> None:
    assert set(found(facts)) == names


def test_the_test_of_a_submission_has_the_environment_of_the_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables such as SBATCH_QOS take precedence over the options of a script."""
    (tmp_path / "sbatch").write_text(f"#!/bin/bash\ncompgen -e >{tmp_path}/exported\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_QOS"):
        monkeypatch.setenv(name, "mine")
    facts = FrozenMap(FACTS)
    target = Target(scheduler="slurm", workdir="/w", options=SlurmOptions(partition="batch"), facts=facts)
    script = Script(id="a", directory="/w/runs/a", text="#!/bin/bash\n#SBATCH --partition=batch\n")
    checks = {each.name: each for each in Slurm().checks(target, LocalHost(), [script])}
    assert checks["submission"].ok
    exported = (tmp_path / "exported").read_text().split()
    assert [name for name in exported if name.startswith("SBATCH_")] == ["SBATCH_ACCOUNT"]
