"""The MaxText framework: its environment, its command lines, its log."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

import attrs

from llmb import Environment, Fault, FrameworkHooks, FrozenMap, Job, LogParser, Run, SpecError, Venv, hookimpl
from llmb_maxtext.log import MaxTextLog
from llmb_maxtext.phases import batch, mesh, mesh_faults, run_phases

OWN_ARGUMENTS = {"run_name": "", "steps": "workload.steps", "max_target_length": "model.seq_len"}
"""Arguments of MaxText that the rest of the spec decides, and what decides them."""


@attrs.frozen(kw_only=True)
class MaxTextOptions:
    """[framework]: ``config`` holds further ``key=value`` arguments of MaxText; they win over the recipe's."""

    config: Mapping[str, str | int | float | bool] = attrs.field(factory=FrozenMap)


class MaxText(FrameworkHooks[MaxTextOptions]):
    """Trains with MaxText: one JAX process per task."""

    options = MaxTextOptions

    @hookimpl
    def prepare_env(self, run: Run[MaxTextOptions]) -> Environment:
        """The recipe's image, or the locked virtual environment that stands in its place."""
        if run.image is not None:
            return Environment(base=run.image)
        lock = files("llmb_maxtext").joinpath("environments", run.settings["lock"]).read_text()
        return Environment(base=Venv(lock=lock, python=run.settings["python"]))

    @hookimpl
    def build_job(self, run: Run[MaxTextOptions]) -> Job:
        """One phase, or profile, conversion and performance run where the recipe has a profile. Raises SpecError."""
        if faults := _refused(run):
            raise SpecError(*faults)
        return Job(
            id=run.id,
            directory=run.paths.run,
            phases=run_phases(run, run.options.config),
            nodes=run.nodes,
            tasks_per_node=run.gpus_per_node,
            gpus_per_node=0 if run.gpu_type == "cpu" else run.gpus_per_node,
            env=run.settings["env"],
            files={f"{run.paths.run}/jax.sh": files("llmb_maxtext").joinpath("jax.sh").read_text()},
            time_limit_s=run.time_limit_s,
        )

    @hookimpl
    def parse_log(self, run: Run[MaxTextOptions] | None) -> LogParser:
        """A parser of step lines, whatever the version that printed them."""
        return MaxTextLog()


def _refused(run: Run[MaxTextOptions]) -> list[Fault]:
    faults = [
        Fault(message=f"is {degree}", key=f"parallelism.{name}", expected="1 with these recipes")
        for name in ("pp", "cp", "ep", "etp")
        if (degree := getattr(run.parallelism, name)) != 1
    ]
    faults = faults or mesh_faults(run) or _own_arguments(run)
    if run.profile is not None:
        always = "both runs of this recipe are always under nsys, whose report feeds the compiler"
        why = always if "nsys" in run.settings else "this recipe runs on CPUs, without a profiler"
        faults.append(Fault(message=f"there is nothing to choose: {why}", key="profile", expected="no [profile] table"))
    return [*faults, *_too_few_steps(run)]


def _own_arguments(run: Run[MaxTextOptions]) -> list[Fault]:
    """Arguments that would change what is measured behind the back of the figures."""
    divided = (*batch(run), *mesh(run), "gradient_accumulation_steps")
    decided = {**OWN_ARGUMENTS, **dict.fromkeys(divided, "[parallelism]")}
    return [
        Fault(
            message="is decided by the rest of the spec",
            key=f"framework.config.{name}",
            expected=f"{decided[name]} in its place" if decided[name] else "no such key",
        )
        for name in run.options.config
        if name in decided
    ]


def _too_few_steps(run: Run[MaxTextOptions]) -> list[Fault]:
    """MaxText stops at once where the first step that it shall profile comes after the last."""
    config = {**run.settings["config"], **run.options.config}
    first = config.get("skip_first_n_steps_for_profiler")
    if not config.get("profiler") or not isinstance(first, int) or run.steps > first:
        return []
    message = f"is {run.steps}, and step {first} is the first that is profiled"
    return [Fault(message=message, key="workload.steps", expected=f"at least {first + 1}")]
