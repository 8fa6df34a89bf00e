"""Ends that need a Slurm cluster of their own: limited memory, no accounting, a controller that soon forgets."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.slurm import Cluster

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture
def toy_cgroups(toy_slurm: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster on which memory is limited."""
    if not Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists():
        pytest.skip("no cgroups of version 1")
    with Cluster(nodes=1, accounting=False, cgroups=True) as cluster:
        for name, value in cluster.env.items():
            monkeypatch.setenv(name, value)
        toy_slurm.cluster = cluster
        yield toy_slurm


def test_out_of_memory_although_only_the_step_says_so(toy_cgroups: Any) -> None:
    run = toy_cgroups.follow(framework={"end": "memory", "end_step": 2}, target={"mem": "60M"})
    assert run["state"] == "failed"
    assert run["reason"].startswith("out of memory")
    assert "after 2 of 5 steps" in run["reason"]


@pytest.fixture
def toy_forgetful(toy_slurm: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster without accounting, that forgets jobs two seconds after their end."""
    with Cluster(nodes=1, accounting=False, settings={"MinJobAge": "2"}) as cluster:
        for name, value in cluster.env.items():
            monkeypatch.setenv(name, value)
        toy_slurm.cluster = cluster
        yield toy_slurm


def forgotten(toy: Any) -> str:
    """The id of a run whose job Slurm knows no more."""
    import llmb

    session = llmb.start(llmb.load(toy.spec()))
    session.wait(until="submitted")
    toy.wait(lambda: (toy.work(session.run_ids[0]) / "ended").exists())
    toy.wait(lambda: session.run_ids[0] not in toy.jobs())
    return str(session.run_ids[0])


def test_a_job_that_slurm_has_forgotten_is_told_by_its_own_word(toy_forgetful: Any) -> None:
    run_id = forgotten(toy_forgetful)
    [run] = toy_forgetful.runs("attach", run_id)
    assert run["state"] == "completed"
    assert run["metrics"]["step_time_s"] == 0.5


def test_a_job_that_has_left_the_queue_is_told_by_the_accounts_once_they_can_be_asked(
    toy_slurm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(nodes=1, settings={"MinJobAge": "2"}) as cluster:
        for name, value in cluster.env.items():
            monkeypatch.setenv(name, value)
        toy_slurm.cluster = cluster
        run_id = forgotten(toy_slurm)
        (toy_slurm.work(run_id) / "ended").unlink()
        cluster.kill("slurmdbd")
        attached = toy_slurm.start("attach", run_id, "--json")
        assert any("waiting for Slurm's accounts, which cannot be asked" in line for line in attached.stderr)
        cluster.start_accounting()
        out, _ = attached.communicate(timeout=60)
    [run] = json.loads(out)["runs"]
    assert run["state"] == "completed"


def test_a_job_that_left_no_word_and_that_slurm_has_forgotten_is_lost(
    toy_forgetful: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import llmb
    from llmb_slurm import poll

    run_id = forgotten(toy_forgetful)
    (toy_forgetful.work(run_id) / "ended").unlink()
    monkeypatch.setattr(poll, "FORGOTTEN_AFTER_S", 1)
    run = toy_forgetful.drive(llmb.attach([run_id]))
    assert (run["state"], run["job_id"] is None) == ("lost", False)
    assert "neither Slurm's queue nor its accounts" in run["reason"]


def test_a_controller_that_is_restarted_is_waited_for(toy_slurm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster of its own: a node that had a job in the meantime gives no GPU to the steps of later ones."""
    with Cluster(nodes=1, accounting=False) as cluster:
        for name, value in cluster.env.items():
            monkeypatch.setenv(name, value)
        toy_slurm.cluster = cluster
        gate = {"gate": str(toy_slurm.gate), "gate_step": 2}
        running = toy_slurm.start("run", toy_slurm.spec(framework=gate), "--json")
        toy_slurm.wait(
            lambda: "toy step 2" in "".join(log.read_text() for log in toy_slurm.workdir.glob("runs/*/logs/train.*"))
        )
        toy_slurm.wait_for_state("running")
        cluster.kill("slurmctld", signal.SIGTERM)  # it saves what it knows
        lines = iter(running.stderr.readline, "")
        assert any("Slurm cannot be asked" in line and "asking again" in line for line in lines)
        toy_slurm.gate.touch()
        cluster.start_controller()
        out, _ = running.communicate(timeout=60)
    [run] = json.loads(out)["runs"]
    assert run["state"] == "completed"
