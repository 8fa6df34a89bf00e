"""The MaxText framework: its environment, its command lines, its log."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from llmb import Environment, FrameworkHooks, FrozenMap, Job, LogParser, Run, SpecError, Venv, hookimpl, resource_text
from llmb_maxtext.faults import faults
from llmb_maxtext.log import MaxTextLog
from llmb_maxtext.phases import run_phases


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
        return Environment(base=Venv.shipped("llmb_maxtext", run.settings))

    @hookimpl
    def build_job(self, run: Run[MaxTextOptions]) -> Job:
        """One phase, or profile, conversion and performance run where the recipe has a profile. Raises SpecError."""
        if wrong := faults(run):
            raise SpecError(*wrong)
        wrapper = {f"{run.paths.run}/jax.sh": resource_text(__package__, "jax.sh")}
        return run.job(run_phases(run), env=run.settings["env"], files=wrapper)

    @hookimpl
    def parse_log(self, run: Run[MaxTextOptions] | None) -> LogParser:
        """A parser of step lines, whatever the version that printed them."""
        return MaxTextLog()
