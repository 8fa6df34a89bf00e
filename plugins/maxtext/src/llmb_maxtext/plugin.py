"""Framework plugin for MaxText."""

from collections.abc import Iterable

from llmb import (
    Environment,
    FrameworkHooks,
    Job,
    LogParser,
    Run,
    Signature,
    SpecError,
    Venv,
    hookimpl,
    read_signatures,
    resource_text,
)
from llmb_maxtext.log import MaxTextLog
from llmb_maxtext.options import MaxTextOptions
from llmb_maxtext.recipe_settings import MaxTextSettings
from llmb_maxtext.training_job import WRAPPER, training_phases
from llmb_maxtext.validation import KEY_HINTS, find_errors


class MaxText(FrameworkHooks[MaxTextOptions]):
    """Training with MaxText, one JAX process per task."""

    options = MaxTextOptions
    key_hints = KEY_HINTS
    model_keys = (*FrameworkHooks.model_keys, "head_size")
    settings = MaxTextSettings

    @hookimpl
    def prepare_env(self, run: Run[MaxTextOptions]) -> Environment:
        """Return the run's image, else the locked virtual environment of the recipe, if it has one."""
        return Environment(base=run.image or Venv.shipped("llmb_maxtext", run.settings))

    @hookimpl
    def build_job(self, run: Run[MaxTextOptions]) -> Job:
        """Return the job with its phases and the rank wrapper. Raise SpecError with all errors of the run."""
        if errors := find_errors(run):
            raise SpecError(*errors)
        wrapper = {f"{run.paths.run}/{WRAPPER}": resource_text(__package__, WRAPPER)}
        mpi = run.settings.get("mpi")
        return run.job(training_phases(run), env=run.settings.get("env", {}), files=wrapper, mpi=mpi, mpi_optional=True)

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the causes of failure that only MaxText reports."""
        return read_signatures("llmb_maxtext", "signatures.toml")

    @hookimpl
    def parse_log(self, run: Run[MaxTextOptions] | None) -> LogParser:
        """Return a parser for the step lines of every MaxText version since 2023."""
        return MaxTextLog()
