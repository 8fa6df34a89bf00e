"""Planning is pure: a plan describes all effects and performs none."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import tomli_w

import llmb
from llmb import PluginRegistry, plan, plan_runs
from llmb.plan_runs import plan_run

EFFECTS = ("subprocess.Popen", "os.mkdir", "os.rename", "os.remove", "os.kill", "socket.connect", "os.fork")
_seen: list[str] | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is None:
        return
    if event in EFFECTS or (
        event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    ):
        _seen.append(f"{event} {arguments}")


@pytest.fixture
def effects() -> Iterator[list[str]]:
    """Collect the effects of this process."""
    global _seen  # an audit hook cannot be removed
    sys.addaudithook(_audit)
    _seen = []
    yield _seen
    _seen = None


def test_planning_does_nothing(toy: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    options = {"task": "data", "warm_up": True}
    spec = toy.spec(framework=options, workload={"dtype": ["bf16", "fp8"], "gpus": [1, 2]})
    seen = request.getfixturevalue("effects")
    planned = plan(llmb.load(spec), registry=PluginRegistry())
    assert seen == []
    assert not toy.home.exists()
    assert [each.run.gpus for each in planned] == [1, 2, 1, 2]
    assert {task.key for each in planned for task in each.tasks} == {planned[0].tasks[0].key}
    for each in planned:
        assert each.script.id == each.run.id == each.job.id
        assert each.run.id in each.script.text
        assert [phase.name for phase in each.job.phases] == ["warm-up", "train"]


def test_a_plan_is_the_same_each_time(toy: Any) -> None:
    workload = llmb.load(toy.spec(framework={"task": "data"}))
    workload = attrs.evolve(workload, runs=tuple(spec.with_run_id("ab2cd-toy") for spec in workload.runs))
    assert plan(workload, registry=PluginRegistry()) == plan(workload, registry=PluginRegistry())


def test_the_environment_of_the_spec_wins_over_a_phase_s_own(toy: Any) -> None:
    spec = toy.spec(framework={"warm_up": True}, env={"TOY_STEPS": "7"})
    [planned] = plan(llmb.load(spec), registry=PluginRegistry())
    assert planned.job.env["TOY_STEPS"] == "7"
    for phase in planned.job.phases:
        assert "TOY_END" in phase.env
        assert "TOY_STEPS" not in phase.env


def test_the_errors_of_all_runs_are_reported_together(toy: Any) -> None:
    workload = llmb.load(toy.spec(workload={"gpus": [1, 2]}, target={"scheduler": "local"}))
    with pytest.raises(llmb.SpecError) as refused:
        plan(workload, registry=Refusing())
    assert [fault.message for fault in refused.value.faults] == ["no 1 GPUs", "no 2 GPUs"]


def test_validate_raises_the_same_errors(toy: Any) -> None:
    workload = llmb.load(toy.spec(workload={"gpus": [1, 2], "repeats": 2}, target={"scheduler": "local"}))
    with pytest.raises(llmb.SpecError) as refused:
        llmb.validate(workload, registry=Refusing())
    assert [fault.message for fault in refused.value.faults] == ["no 1 GPUs", "no 2 GPUs"]


def test_validate_keeps_no_plan(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[weakref.ref[llmb.RunPlan]] = []
    kept: list[int] = []

    def counted(*arguments: Any) -> llmb.RunPlan:
        kept.append(sum(each() is not None for each in plans))
        planned = plan_run(*arguments)
        plans.append(weakref.ref(planned))
        return planned

    monkeypatch.setattr(plan_runs, "plan_run", counted)
    llmb.validate(llmb.load(toy.spec(workload={"gpus": [1, 2], "dtype": ["bf16", "fp8"]})))
    assert len(kept) == 4
    assert max(kept) <= 1  # the last one


def test_a_job_with_an_environment_of_its_own_is_rejected(toy: Any) -> None:
    class Own(PluginRegistry):
        def framework(self, name: str) -> Any:
            from llmb_toy.plugin import Toy

            class OwnEnvironment(Toy):
                def build_job(self, run: Any) -> Any:
                    return attrs.evolve(super().build_job(run), environment=llmb.Environment(secrets=("A",)))

            return OwnEnvironment()

    with pytest.raises(llmb.PluginError, match=r"toy: build_job\(\) sets Job.environment"):
        plan(llmb.load(toy.spec()), registry=Own())


def test_a_scheduler_s_own_secrets_are_kept_beside_the_job_s(toy: Any) -> None:
    spec = toy.spec(framework={"secrets": ["THEIRS"], "task": "x", "task_on": "scheduler", "task_secrets": ["MORE"]})
    [planned] = plan(llmb.load(spec), registry=LocalBut(secrets=("OURS",)))
    assert planned.script.secrets == ("OURS", "THEIRS")
    assert planned.tasks[-1].script.secrets == ("OURS", "MORE")


def test_logs_whose_copies_would_be_one_file_are_rejected(toy: Any) -> None:
    registry = LocalBut(logs={"train": ("/work/rank0/out.log", "/work/rank1/out.log")})
    with pytest.raises(llmb.PluginError, match=r"Changed: build_job\(\) returned several logs named out.log"):
        plan(llmb.load(toy.spec()), registry=registry)


def test_a_file_of_the_job_that_the_scheduler_writes_itself_is_rejected(toy: Any) -> None:
    with pytest.raises(llmb.PluginError, match=r'toy: build_job\(\) returned the file "train.sh", which local writes'):
        plan(llmb.load(toy.spec()), registry=LocalBut(reserved_files=("train.sh",)))


class LocalBut(PluginRegistry):
    """The local scheduler, whose scripts have other fields."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.fields = fields

    def scheduler(self, name: str) -> Any:
        from llmb_local.plugin import Local

        fields = self.fields

        class Changed(Local):
            def build_job(self, job: Any, target: Any) -> Any:
                return attrs.evolve(super().build_job(job, target), **fields)

        return Changed()


class Refusing(PluginRegistry):
    """The toy refuses every job."""

    def framework(self, name: str) -> Any:
        from llmb_toy.plugin import Toy

        class Refuses(Toy):
            def build_job(self, run: Any) -> Any:
                raise llmb.SpecError(f"no {run.gpus} GPUs")

        return Refuses()


@pytest.mark.parametrize(
    ("recipe", "window", "steps"),
    [
        ("maxtext/llama2-tiny", [50, 50], "from 0 to 49"),
        ("maxtext/llama2-tiny", [0, 49], None),
        ("megatron_bridge/llama3-tiny", [0, 10], "from 1 to 50"),
        ("megatron_bridge/llama3-tiny", [1, 50], None),
    ],
)
def test_a_window_beyond_the_framework_s_own_numbers_is_rejected(
    tmp_path: Path, recipe: str, window: list[int], steps: str | None
) -> None:
    workload = {"recipe": recipe, "gpu_type": "cpu", "dtype": "fp32", "gpus": 1, "steps": 50}
    file = tmp_path / "spec.toml"
    file.write_text(
        tomli_w.dumps({"workload": workload, "measure": {"window": window}, "target": {"scheduler": "local"}})
    )
    told = []
    try:
        plan(llmb.load(file), registry=PluginRegistry())
    except llmb.SpecError as error:
        told = [f"{fault.key}: {fault.message}" for fault in error.faults]
    framework = recipe.partition("/")[0]
    assert told == (
        [f"measure.window: window {window} is outside the run: {framework} counts steps {steps}"] if steps else []
    )


SWEEP: dict[str, Any] = {
    "workload": {"recipe": "nemo_launcher/llama3.1-8b", "gpu_type": "h100", "dtype": "bf16", "gpus": [8, 16]},
    "target": {"scheduler": "slurm", "host": "cluster", "workdir": "/scratch"},
}


def test_each_image_of_a_sweep_has_its_own_import() -> None:
    images = ["registry.example/a:1", "registry.example/b:1"]
    planned = plan(llmb.load({**SWEEP, "sweep": {"workload.image": images}}))
    imported = [next(task.key for task in each.tasks if task.task.kind == "container image") for each in planned]
    assert len(imported) == 4
    assert ["image-a" in key for key in imported] == ["registry.example/a:1" in str(each.run.image) for each in planned]
    assert len(set(imported)) == len(images)


def test_a_sweep_over_runtimes_rejects_each_run_of_the_wrong_one() -> None:
    with pytest.raises(llmb.SpecError) as rejected:
        plan(llmb.load({**SWEEP, "sweep": {"target.runtime": ["venv", "pyxis", "none"]}}))
    assert [fault.key for fault in rejected.value.faults] == ["sweep.target.runtime[0]"]
