"""The NeMo Launcher framework: its environment, its data, its command, its log."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from llmb import (
    Dataset,
    Duration,
    Environment,
    FrameworkHooks,
    FrozenMap,
    Job,
    LogFiles,
    LogParser,
    Repository,
    Run,
    SpecError,
    hookimpl,
)
from llmb_nemo_launcher.command import job_env, job_files, job_mounts, train_phase
from llmb_nemo_launcher.config import printed_every, timing_buffer
from llmb_nemo_launcher.dataset import dataset_of
from llmb_nemo_launcher.faults import faults
from llmb_nemo_launcher.log import NeMoLog

ELSEWHERE = {"comparable": True}  # where data lie, and how they are made, does not change how fast the training is


@attrs.frozen(kw_only=True)
class NeMoLauncherOptions:
    """[framework].

    ``config`` holds further overrides of NeMo's configuration (``"model.gc_interval" = 100``, or ``"+model.new"`` for
    a key that it lacks); they win over the recipe's, and a string is in Hydra's own words (``"[0,1]"``). ``nemo`` and
    ``launcher`` are the folders of NeMo's and NeMo Launcher's sources in the image. ``index_mapping_dir`` is the
    folder, which must be there, in which NeMo keeps the index of its data; by default one that all runs share.
    ``dataset_time_limit`` is that of the job which makes the data; absent, the recipe's.
    """

    config: Mapping[str, str | int | float | bool] = attrs.field(factory=FrozenMap)
    nemo: str = attrs.field(default="/opt/NeMo", metadata=ELSEWHERE)
    launcher: str = attrs.field(default="/opt/NeMo-Framework-Launcher", metadata=ELSEWHERE)
    index_mapping_dir: str | None = attrs.field(default=None, metadata=ELSEWHERE)
    dataset_time_limit: Duration | None = attrs.field(default=None, metadata=ELSEWHERE)


class NeMoLauncher(FrameworkHooks[NeMoLauncherOptions]):
    """Trains with NeMo, as NeMo Launcher starts it: one process per GPU, a configuration composed by Hydra."""

    options = NeMoLauncherOptions
    log_files = LogFiles(  # of the original scripts: results/24.11/fp8/70b/64/log-nemo_llama3.1_70b_64_1234.out
        directory="results",
        training=("log-nemo_*.out",),
        other=("*.err", "slurm-*.out"),
        experiment=r"^log-(nemo_.+)\.out$",
    )

    @hookimpl
    def prepare_env(self, run: Run[NeMoLauncherOptions]) -> Environment:
        """The recipe's image, and the publisher's repository where a file of it is needed."""
        repository = Repository.of(run.settings)
        return Environment(base=run.image, repositories=(repository,) if repository else ())

    @hookimpl
    def prepare_dataset(self, run: Run[NeMoLauncherOptions]) -> Dataset | None:
        """The tokenizer where the image lacks it, and the data where they are not synthetic."""
        return dataset_of(run)

    @hookimpl
    def build_job(self, run: Run[NeMoLauncherOptions]) -> Job:
        """One training phase on whole nodes. Raises SpecError."""
        if wrong := faults(run):
            raise SpecError(*wrong)
        return run.job((train_phase(run),), env=job_env(run), mounts=job_mounts(run), files=job_files(run))

    @hookimpl
    def parse_log(self, run: Run[NeMoLauncherOptions] | None) -> LogParser:
        """A parser of NeMo's bars and lines; a run has NeMo 1's, and knows which steps it prints and averages."""
        if run is None:
            return NeMoLog()
        return NeMoLog(timing_buffer(run), first_step=1, printed_every=printed_every(run))
