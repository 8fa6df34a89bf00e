"""Kills of ``llmb`` at any moment of a sweep on a Slurm cluster over SSH: three jobs, three correct results."""

from __future__ import annotations

import json
import shutil
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
GATED = {"preparing": 40, "running": 30}  # stages that wait at a gate until the kill, so that moments never run out
STEPS = [f"{number},0.5,2.5,,,1,0" for number in range(1, 6)]

# In the folder of a case, or in one above it: the number of the accepted job after which to kill (of the task that
# comes first and of the runs), the file with the process id of llmb, and whether bash is killed too.
KILL_AT_SBATCH = "kill-at-sbatch"

SBATCH = """#!/bin/bash
answer=$({sbatch} "$@") || exit
folder=$PWD
while [ "$folder" ] && [ ! -e "$folder/{plan}" ]; do folder=${{folder%/*}}; done
number=1
if [ "$folder" ] && read -r wanted pid_file with_bash <"$folder/{plan}"; then
  until mkdir "$folder/accepted.$number"; do ((number += 1)); done 2>/dev/null
  if [ "$number" = "$wanted" ]; then
    kill -KILL "$(<"$pid_file")"
    shells=() pid=$PPID
    while [ "$(</proc/$pid/comm)" = bash ]; do
      shells+=("$pid") pid=$(awk '/^PPid/ {{ print $2 }}' "/proc/$pid/status")
    done
    if [ "$with_bash" ]; then kill -KILL "${{shells[@]}}" && exit; fi
  fi
fi
echo "$answer"
"""


@pytest.fixture(scope="module")
def way(slurm_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Return the cluster's login node, on which sbatch can kill its callers."""
    home = tmp_path_factory.mktemp("login")
    (home / "bin").mkdir()
    sbatch = home / "bin/sbatch"
    sbatch.write_text(SBATCH.format(sbatch=shutil.which("sbatch"), plan=KILL_AT_SBATCH))
    sbatch.chmod(0o755)
    (home / ".profile").write_text(f"PATH={home}/bin:$PATH\n")
    with Sshd(env={**slurm_session.env, "HOME": str(home)}) as server:
        yield server


class Case:
    """Sweep in its own folder, killed at one moment."""

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
        if stage not in GATED:  # a run that ends before its moment comes must not wait
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
            **more,
        }

    def killed(self) -> dict[str, Any]:
        return self.job("run", self.spec, "--json", kill=(self.stage, self.number))

    def killed_by_sbatch(self, number: int, *, with_bash: bool) -> dict[str, Any]:
        """Return a job that is killed when that many jobs were accepted."""
        job = self.job("run", self.spec, "--json")
        plan = f"{number} {job['output']}.pid {'yes' if with_bash else ''}\n"
        (self.toy.folder / KILL_AT_SBATCH).write_text(plan)
        return job

    def attached(self) -> dict[str, Any]:
        return self.job("attach", "--json")

    def check(self, cluster: Any) -> None:
        """Check that each run has its true end, and that everything ran once."""
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
    """Return the moments in each stage of a sweep that is not killed."""
    case = Case(toy_class(tmp_path_factory.mktemp("listing")), way)
    job = case.job("run", case.spec, "--json", kill=("", 0))
    assert killer.run([job]) == [0]
    moments = json.loads(Path(f"{job['output']}.moments").read_text())
    names = {stage: [name for at, name in moments if at == stage] for stage in STAGES}
    certain = 1 + names["after the start"].index("answered")  # how often a job is polled until it runs varies
    names["after the start"] = names["after the start"][:certain]
    return names | {stage: ["whatever comes"] * count for stage, count in GATED.items()}


def kill_and_attach(killer: Killer, cases: list[Case], cluster: Any) -> None:
    ends = killer.run([case.killed() for case in cases])
    assert set(ends) <= {-9, 0}  # three that end together do it in fewer moments than one after another
    assert ends.count(-9) >= min(len(cases), 5)
    attach(killer, cases, cluster)


def attach(killer: Killer, cases: list[Case], cluster: Any) -> None:
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
    killer: Killer, way: Sshd, tmp_path: Path, toy_class: Any, slurm_session: Any
) -> None:
    """Kill llmb after sbatch accepted the task or one of the runs, with and without the shell that called sbatch."""
    cases, jobs = [], []
    for number in range(1, RUNS + 2):
        for with_bash in (False, True):
            case = Case(toy_class(tmp_path / f"{number}{'-with-bash' * with_bash}"), way)
            cases.append(case)
            jobs.append(case.killed_by_sbatch(number, with_bash=with_bash))
    assert killer.run(jobs) == [-9] * len(jobs)
    attach(killer, cases, slurm_session)
