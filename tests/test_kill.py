"""Kills of ``llmb`` at any moment: afterwards every run has its true end, and nothing ran twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from parts.killer import STAGES, Killer, spread

pytestmark = pytest.mark.xdist_group("kill")  # the moments are listed once

GATED = {"preparing": 85, "running": 40}  # stages that wait at a gate until the kill, so that moments never run out


class Case:
    """Run in its own folder, killed at one moment."""

    def __init__(self, toy: Any, stage: str = "", number: int = 0) -> None:
        self.toy = toy
        self.stage, self.number = stage, number
        options = {"task": "data", "gate": str(toy.gate), "gate_step": 2, "task_gate": str(toy.task_gate)}
        self.spec = toy.spec(framework=options)
        if stage != "preparing":
            toy.task_gate.touch()
        if stage in ("", "finishing"):
            self.open_gates()

    def open_gates(self) -> None:
        self.toy.task_gate.touch()
        self.toy.gate.touch()

    def job(self, *arguments: str, **more: Any) -> dict[str, Any]:
        env = {"LLMB_HOME": str(self.toy.home)}
        return {"arguments": arguments, "env": env, "output": str(self.toy.folder / arguments[0]), **more}

    def killed(self) -> dict[str, Any]:
        return self.job("run", self.spec, "--json", kill=(self.stage, self.number))

    def attached(self) -> dict[str, Any]:
        return self.job("attach", *(record.name for record in self.toy.records), "--json")

    def check(self) -> None:
        """Check that the run has its true end, and that everything ran once."""
        where = f"killed at moment {self.number} of {self.stage}"
        out, err = ((self.toy.folder / f"attach.{name}").read_text() for name in ("out", "err"))
        [run] = json.loads(out)["runs"]
        assert run["state"] == "completed", (where, run, err)
        assert run["metrics"]["step_time_s"] == 0.5
        record, work = Path(run["directory"]), self.toy.work(run["run_id"])
        assert json.loads((record / "result.json").read_text()) == run
        words = Counter(line.partition(" ")[0] for line in self.toy.journal())
        assert words == {"task-begin": 1, "task-end": 1, "begin": 1, "end": 1}, where
        assert (record / "steps.csv").read_text().splitlines()[1:] == [f"{n},0.5,2.5,,,1,0" for n in range(1, 6)], where
        log = "train.0.0.log"
        assert (record / "logs" / log).read_bytes() == (work / "logs" / log).read_bytes(), where
        states = [json.loads(line).get("state") for line in _whole_lines(record / "events.jsonl")]
        assert states.count("completed") == 1, (where, states)
        assert states[-1] == "completed", (where, states)


def _whole_lines(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line.endswith("}") and line.startswith("{")]


@pytest.fixture(scope="module")
def listing(killer: Killer, tmp_path_factory: pytest.TempPathFactory, toy_class: Any) -> dict[str, list[str]]:
    """Return the moments in each stage of a run that is not killed."""
    case = Case(toy_class(tmp_path_factory.mktemp("listing")))
    job = case.job("run", case.spec, "--json", kill=("", 0))
    assert killer.run([job]) == [0]
    moments = json.loads(Path(f"{job['output']}.moments").read_text())
    names = {stage: [name for at, name in moments if at == stage] for stage in STAGES}
    names["after the start"] = up_to_the_first_poll(names["after the start"])
    return names | {stage: ["whatever comes"] * count for stage, count in GATED.items()}


def up_to_the_first_poll(names: list[str]) -> list[str]:
    """Return the moments that every run has. How many polls find the job in the queue varies."""
    return names[: 1 + names.index("process ended") + 2]  # and the next effect


def kill_and_attach(killer: Killer, cases: list[Case]) -> None:
    assert killer.run([case.killed() for case in cases]) == [-9] * len(cases)
    for case in cases:
        case.open_gates()
    assert set(killer.run([case.attached() for case in cases])) == {0}
    for case in cases:
        case.check()


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_was_killed_at_any_moment_has_its_true_end_and_ran_once(
    stage: str, listing: dict[str, list[str]], killer: Killer, tmp_path: Path, toy_class: Any
) -> None:
    numbers = range(1, len(listing[stage]) + 1)
    assert numbers
    kill_and_attach(killer, [Case(toy_class(tmp_path / str(number)), stage, number) for number in numbers])


def test_a_kill_while_bash_submits(
    listing: dict[str, list[str]], killer: Killer, tmp_path: Path, toy_class: Any
) -> None:
    """Bash continues alone and submits the job; attaching does not submit it again."""
    numbers = [number for number, name in enumerate(listing["before the start"], 1) if name == "within bash"]
    assert numbers
    cases = [Case(toy_class(tmp_path / str(number)), "before the start", number) for number in numbers]
    kill_and_attach(killer, cases)


def test_a_kill_while_attaching(listing: dict[str, list[str]], killer: Killer, tmp_path: Path, toy_class: Any) -> None:
    case = Case(toy_class(tmp_path / "twice"), "before the start", 2)
    assert killer.run([case.killed()]) == [-9]
    assert killer.run([case.attached() | {"kill": ("starting", 9)}]) == [-9]
    case.open_gates()
    assert killer.run([case.attached()]) == [0]
    case.check()


@pytest.mark.slow
def test_a_sweep_that_is_killed_while_it_is_recorded_is_recorded_completely_or_not_at_all(
    killer: Killer, tmp_path: Path, toy_class: Any
) -> None:
    listed = Sweep(toy_class(tmp_path / "listing"))
    assert killer.run([listed.killed()]) == [0]
    stages = [stage for stage, _ in json.loads((listed.toy.folder / "run.moments").read_text())]
    moments = [("starting", number) for number in spread(stages.count("starting"), 24)]
    moments += [("preparing", number) for number in spread(stages.count("preparing"), 24)]
    sweeps = [Sweep(toy_class(tmp_path / f"{stage} {number}"), stage, number) for stage, number in moments]
    ends = killer.run([sweep.killed() for sweep in sweeps])
    assert set(ends) <= {-9, 0}
    assert ends.count(-9) >= 0.9 * len(ends)  # threads write the records, so that a late moment may not come
    assert set(killer.run([sweep.attached() for sweep in sweeps])) == {0}
    completed = {sweep.check_completed(by="attach" if end else "run") for sweep, end in zip(sweeps, ends, strict=True)}
    assert completed == {0, Sweep.RUNS}


class Sweep(Case):
    """Several runs without gates."""

    RUNS = 3

    def __init__(self, toy: Any, stage: str = "", number: int = 0) -> None:
        super().__init__(toy, stage, number)
        self.spec = toy.spec(workload={"repeats": self.RUNS})

    def attached(self) -> dict[str, Any]:
        return self.job("attach", "--json")

    def check_completed(self, by: str) -> int:
        """Check that all runs that this command followed are complete, and ran once. Return their number."""
        runs = json.loads((self.toy.folder / f"{by}.out").read_text())["runs"]
        where = f"killed at moment {self.number} of {self.stage}"
        assert [run["state"] for run in runs] == ["completed"] * len(runs), where
        assert len(self.toy.journal("begin")) == len(self.toy.journal("end")) == len(runs), where
        return len(runs)


@pytest.mark.slow
def test_two_processes_attach_together(killer: Killer, tmp_path: Path, toy_class: Any) -> None:
    case = Case(toy_class(tmp_path / "two"), "running", 4)
    assert killer.run([case.killed()]) == [-9]
    case.open_gates()
    other = case.attached() | {"output": str(tmp_path / "other")}
    assert killer.run([case.attached(), other]) == [0, 0]
    case.check()
    assert json.loads((tmp_path / "other.out").read_text()) == json.loads((case.toy.folder / "attach.out").read_text())


def test_attaching_beside_a_living_run_doubles_nothing(toy: Any) -> None:
    case = Case(toy, "running")
    running = toy.start("run", case.spec, "--json")
    run_id = toy.wait_for_state("running")
    beside = toy.start("attach", run_id, "--json")
    case.open_gates()
    results = [json.loads(process.communicate()[0]) for process in (running, beside)]
    assert results[0] == results[1]
    (toy.folder / "attach.out").write_text(json.dumps(results[0]))
    (toy.folder / "attach.err").touch()
    case.check()
