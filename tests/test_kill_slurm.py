"""A sweep on a Slurm cluster over SSH, and ``llmb`` killed at any moment: three jobs, three right results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.killer import STAGES, Killer, spread
from parts.sshd import Sshd

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("kill_slurm")]  # has a cluster of its own

RUNS = 3
MOMENTS = 10  # of each stage in the slow test
WAITING = {"preparing": 40, "running": 30}  # stages that wait at a gate until the kill, and so have no end of moments
CERTAIN = 18  # moments of "after the start" that come before the first answer of the queue, however long jobs wait
STEPS = [f"{number},0.5,2.5,,,1,0" for number in range(1, 6)]


@pytest.fixture(scope="module")
def way(slurm_session: Any) -> Iterator[Sshd]:
    """The cluster's login node."""
    with Sshd(env=slurm_session.env) as server:
        yield server


@pytest.fixture(scope="module")
def killer(toy_class: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killer]:
    server = Killer(toy_class(tmp_path_factory.mktemp("killer")).env)
    yield server
    server.close()


class Case:
    """One sweep in a folder of its own, killed at one moment."""

    def __init__(self, toy: Any, way: Sshd, stage: str = "", number: int = 0) -> None:
        self.toy, self.way = toy, way
        self.stage, self.number = stage, number
        self.workdir = toy.folder / "shared"
        gates = {"gate": str(toy.gate), "gate_step": 2, "task_gate": str(toy.task_gate)}
        target = {"scheduler": "slurm", "host": way.host, "workdir": str(self.workdir)}
        self.spec = toy.spec(
            workload={"repeats": RUNS},
            framework={**gates, "task": "data", "task_on": "scheduler"},
            target={**target, "exclusive": False, "mem": "100M"},
        )
        if stage != "preparing":
            toy.task_gate.touch()
        if stage in ("", "finishing"):
            self.open_gates()

    def open_gates(self) -> None:
        self.toy.task_gate.touch()
        self.toy.gate.touch()

    def job(self, *arguments: str, **more: Any) -> dict[str, Any]:
        env = {"LLMB_HOME": str(self.toy.home), **self.way.env}
        return {
            "arguments": arguments,
            "env": env,
            "output": str(self.toy.folder / arguments[0]),
            "ssh": True,
            "deadline_s": 300,
            **more,
        }

    def killed(self) -> dict[str, Any]:
        return self.job("run", self.spec, "--json", kill=(self.stage, self.number))

    def attached(self) -> dict[str, Any]:
        return self.job("attach", "--json")

    def check(self, cluster: Any) -> None:
        """The true end of each, and everything once."""
        where = f"killed at moment {self.number} of {self.stage}"
        err = (self.toy.folder / "attach.err").read_text()
        runs = [json.loads((record / "result.json").read_text()) for record in self.toy.records]
        assert [run["state"] for run in runs] == ["completed"] * RUNS, (where, runs, err)
        words = Counter(line.partition(" ")[0] for line in self.toy.journal())
        assert words == {"task-begin": 1, "task-end": 1, "begin": RUNS, "end": RUNS}, where
        for run in runs:
            record = Path(run["directory"])
            assert run["metrics"]["step_time_s"] == 0.5
            assert (record / "steps.csv").read_text().splitlines()[1:] == STEPS, where
            copy, log = record / "logs/train.0.log", self.workdir / "runs" / run["run_id"] / "logs/train.0.log"
            assert copy.read_bytes() == log.read_bytes(), where
        listed = cluster.order("squeue", "-a", "-h", "-t", "all", "-O", "Name:.0|,JobID:.0|,WorkDir:.0").splitlines()
        mine = Counter(name for name, _, folder in (line.split("|") for line in listed) if str(self.workdir) in folder)
        assert sorted(mine.values()) == [1] * (RUNS + 1), (where, mine)
        assert {run["run_id"] for run in runs} < set(mine)


@pytest.fixture(scope="module")
def listing(
    killer: Killer, way: Sshd, tmp_path_factory: pytest.TempPathFactory, toy_class: Any
) -> dict[str, list[str]]:
    """What is done in each stage of a sweep that nobody kills."""
    case = Case(toy_class(tmp_path_factory.mktemp("listing")), way)
    job = case.job("run", case.spec, "--json", kill=("", 0))
    assert killer.run([job]) == [0]
    moments = json.loads(Path(f"{job['output']}.moments").read_text())
    names = {stage: [name for at, name in moments if at == stage] for stage in STAGES}
    names["after the start"] = names["after the start"][:CERTAIN]
    return names | {stage: ["whatever comes"] * count for stage, count in WAITING.items()}


def kill_and_attach(killer: Killer, cases: list[Case], cluster: Any) -> None:
    ends = killer.run([case.killed() for case in cases])
    assert set(ends) <= {-9, 0}  # three that end together do it in fewer moments than one after another
    assert ends.count(-9) >= min(len(cases), 5)
    for case in cases:
        case.open_gates()
    assert set(killer.run([case.attached() for case in cases])) == {0}
    for case in cases:
        case.check(cluster)


@pytest.mark.parametrize("stage", STAGES)
def test_at_ten_moments_of_each_stage(
    stage: str, listing: Any, killer: Killer, way: Sshd, tmp_path: Path, toy_class: Any, slurm_session: Any
) -> None:
    numbers = spread(len(listing[stage]), MOMENTS)
    assert len(numbers) >= 5
    kill_and_attach(
        killer, [Case(toy_class(tmp_path / str(number)), way, stage, number) for number in numbers], slurm_session
    )


def test_between_the_acceptance_of_a_job_and_its_record(
    listing: Any, killer: Killer, way: Sshd, tmp_path: Path, toy_class: Any, slurm_session: Any
) -> None:
    """After each of the three, with and without the shell that asked."""
    names = listing["before the start"]
    numbers = [number for number, name in enumerate(names, 1) if "accepted" in name]
    assert len(numbers) == 2 * RUNS
    cases = [Case(toy_class(tmp_path / str(number)), way, "before the start", number) for number in numbers]
    kill_and_attach(killer, cases, slurm_session)
