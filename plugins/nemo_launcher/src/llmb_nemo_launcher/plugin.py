"""Framework plugin for NeMo Launcher."""

from collections.abc import Iterable

from llmb import (
    Dataset,
    Environment,
    FrameworkHooks,
    Job,
    LogFiles,
    LogParser,
    Repository,
    Run,
    Signature,
    SpecError,
    hookimpl,
    read_signatures,
)
from llmb_nemo_launcher.log import NeMoLog
from llmb_nemo_launcher.nemo_config import SET_BY_LLMB, flag_values, log_interval, timing_buffer
from llmb_nemo_launcher.options import NeMoLauncherOptions
from llmb_nemo_launcher.pile_dataset import pile_tasks
from llmb_nemo_launcher.recipe_settings import NeMoLauncherSettings
from llmb_nemo_launcher.tokenizer import tokenizer_task
from llmb_nemo_launcher.training_job import job_env, job_files, job_mounts, train_phase
from llmb_nemo_launcher.validation import find_errors


class NeMoLauncher(FrameworkHooks[NeMoLauncherOptions]):
    """Training with NeMo as NeMo Launcher starts it: one process per GPU, configured by Hydra."""

    options = NeMoLauncherOptions
    key_hints = SET_BY_LLMB
    model_keys = (*FrameworkHooks.model_keys, "head_size")
    settings = NeMoLauncherSettings
    log_files = LogFiles(  # of the original scripts, e.g. results/24.11/fp8/70b/64/log-nemo_llama3.1_70b_64_1234.out
        directory="results",
        training=("log-nemo_*.out",),
        other=("*.err", "slurm-*.out"),
        experiment=r"^log-(nemo_.+)\.out$",
    )
    rank_times_setting = 'framework.config = {"+exp_manager.create_straggler_detection_callback" = true}'

    @hookimpl
    def prepare_env(self, run: Run[NeMoLauncherOptions]) -> Environment:
        """Return the run's image, and the publisher's repository if the recipe needs a file from it."""
        repository = Repository.of(run.settings)
        return Environment(base=run.image, repositories=(repository,) if repository else ())

    @hookimpl
    def prepare_dataset(self, run: Run[NeMoLauncherOptions]) -> Dataset | None:
        """Return the tasks for the tokenizer and the Pile, or None if the recipe needs neither."""
        tasks = [tokenizer_task(run)] if "tokenizer" in run.settings else []
        if "dataset" in run.settings:
            tasks += pile_tasks(run)
        return Dataset(tasks=tuple(tasks)) if tasks else None

    @hookimpl
    def build_job(self, run: Run[NeMoLauncherOptions]) -> Job:
        """Return the job with one training phase. Raise SpecError with all errors of the run."""
        if errors := find_errors(run):
            raise SpecError(*errors)
        return run.job(
            (train_phase(run),),
            env=job_env(run),
            mounts=job_mounts(run),
            files=job_files(run),
            mpi=run.settings.get("mpi"),
            mpi_optional=not flag_values(run).get("model.ub_tp_comm_overlap"),
        )

    @hookimpl
    def diagnose(self) -> Iterable[Signature]:
        """Return the causes of failure that only NeMo and Megatron report."""
        return read_signatures("llmb_nemo_launcher", "signatures.toml")

    @hookimpl
    def parse_log(self, run: Run[NeMoLauncherOptions] | None) -> LogParser:
        """Return a parser for the progress bars of NeMo 1 and the step lines of NeMo 2.

        For a run, the parser uses the intervals at which this run prints steps and averages their times.
        """
        if run is None:
            return NeMoLog()
        return NeMoLog(timing_buffer(run), first_step=1, printed_every=log_interval(run))
