"""The hook specifications of the three kinds of plugin.

Each Protocol is the type, the specification and the reference of one kind. A plugin inherits from its Protocol
(``class MyTrainer(FrameworkHooks[MyOptions])``), so that a type checker reports a missing hook or a wrong signature.
The plugin marks each hook that it implements with `hookimpl`. A hook that it does not implement has the default of the
Protocol.

Hooks take values and return values, and core performs the effects. Only `submit`, `poll`, `history`, `cancel` and
`checks` run commands, through the `Host` that they are given. A hook may leave out arguments. llmb may add arguments to
hooks and fields to values, but never renames or removes one.

A hook raises SpecError for a run that the plugin does not support, RecipeError for an invalid table of a recipe, and
TargetError or UnknownOutcomeError if a host cannot be reached. Any other exception is an error of the plugin.
"""

from __future__ import annotations  # the guard prints the annotations as they are written

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import attrs
import pluggy

from llmb.values.environment import Environment
from llmb.values.failure import Signature
from llmb.values.frozen import FrozenMap
from llmb.values.host import Host
from llmb.values.job import Dataset, Job, Script, Task
from llmb.values.job_history import JobHistory
from llmb.values.job_status import JobHandle, JobStatus
from llmb.values.log_file_names import LogFiles
from llmb.values.model import Accelerator
from llmb.values.recipe import Window
from llmb.values.report_content import Report
from llmb.values.run import Run, Target
from llmb.values.steps import LogParser
from llmb.values.types.check_types import typed_fields

OptionsT = TypeVar("OptionsT")

MODEL_SIZES = ("layers", "hidden", "ffn", "heads", "query_groups", "vocab", "seq_len", "experts", "top_k")
"""The sizes of a plain transformer, with or without experts."""

hookspec = pluggy.HookspecMarker("llmb")
hookimpl = pluggy.HookimplMarker("llmb")
_first = hookspec(firstresult=True)


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class DoctorCheck:
    """A check of ``llmb doctor``: its name and result, the detail, and how to fix what is missing.

    ``ok`` is None if there is no result, because the check cannot be made or only some runs need what is missing. Then
    ``detail`` contains the reason. Such a check is no failure.
    """

    name: str
    ok: bool | None
    detail: str = ""
    remedy: str = ""


class FrameworkHooks(Protocol[OptionsT]):
    """A training framework: its environment, dataset, command line and log format. It knows no scheduler."""

    options: type[OptionsT]
    """The attrs class of the spec's [framework] table. Every field has a default.

    A run with an option other than its default is not comparable with the baseline, unless the field has the metadata
    ``{"comparable": True}``.
    """

    key_hints: Mapping[str, str] = FrozenMap()
    """Keys of the framework's configuration that users may write into the spec, each with the key that sets it."""

    settings: type | None = None
    """The attrs class that checks the [framework] tables of recipes, ``run.settings``, or None to accept all keys."""

    window: Window = "last"
    """The measuring window of a log that is parsed without a recipe."""

    log_files: LogFiles = LogFiles()
    """The names of log files in a directory, and the directory that is used if the user names none."""

    model_keys: tuple[str, ...] = MODEL_SIZES
    """The keys of [model] whose values the framework passes to the training. Other values than the recipe's are errors.

    Sizes of a part, such as ``mla.q_rank``, belong to the key of the part. ``pipeline_layout`` of [parallelism] is such
    a key too.
    """

    rank_times_setting: str = ""
    """The setting with which all ranks print their step times, or "" if they print these times by default."""

    @_first
    def prepare_env(self, run: Run[OptionsT]) -> Environment:
        """Return the image or virtual environment of the job, and the names of the secrets that it needs."""
        return Environment()

    @_first
    def prepare_dataset(self, run: Run[OptionsT]) -> Dataset | None:
        """Return the tasks that create the dataset, each with its check, or None for synthetic data."""
        return None

    @_first
    def build_job(self, run: Run[OptionsT]) -> Job:
        """Return the run as a job that names no scheduler.

        Core sets ``Job.environment`` to the result of `prepare_env`, and adds [env] and [mounts] of the spec. Raise
        SpecError for a run that the framework does not support.
        """
        raise NotImplementedError

    @_first
    def parse_log(self, run: Run[OptionsT] | None) -> LogParser:
        """Return a new parser of the logs of one run, block by block. ``run`` is None for a log without a record."""
        raise NotImplementedError

    @_first
    def peak_flops(self, gpu_type: str, dtype: str) -> float | None:
        """Return the dense peak, in FLOP/s, of a GPU type and dtype that core's table lacks, or None if unknown."""
        return None

    @_first
    def diagnose(self) -> Iterable[Signature]:
        """Return the framework's own causes of failure, each identified by a text in the log."""
        return ()

    @_first
    def explain_missing_steps(self, lines: Sequence[str]) -> str:
        """Return why these lines, the first ones of a log, have no step, or "". Users see it if a log has none."""
        return ""


class SchedulerHooks(Protocol[OptionsT]):
    """A scheduler: how jobs are built, submitted, polled and cancelled. It knows no framework."""

    options: type[OptionsT]
    """The attrs class of the scheduler's own keys of [target]. A field without a default is required."""

    key_hints: Mapping[str, str] = FrozenMap()
    """Options of the scheduler's commands that users may write into [target], each with the key that sets it."""

    single_node: bool = False
    """True if all GPUs of a run are on one node, for any number of GPUs."""

    poll_interval_s: tuple[float, float] = (2.0, 30.0)
    """The shortest and the longest pause between two polls. The pause grows while nothing changes."""

    @_first
    def host(self, target: Target[OptionsT]) -> str | None:
        """Return the machine through which llmb reaches the target, or None for this machine.

        The default is ``host`` of [target]. Raise SpecError, with the key ``target.host``, for a machine on which the
        scheduler cannot run jobs.
        """
        return target.host

    @_first
    def prepare_env(self, environment: Environment, target: Target[OptionsT]) -> tuple[Task, ...]:
        """Return the tasks that create the environment on this target."""
        return ()

    @_first
    def prepare_dataset(self, dataset: Dataset, target: Target[OptionsT]) -> Dataset:
        """Return the dataset, with its tasks changed if they run differently on this target."""
        return dataset

    @_first
    def build_job(self, job: Job, target: Target[OptionsT]) -> Script:
        """Return the script of the job. Pure: ``--dry-run`` prints the script.

        Core adds the secrets of the job to those of the script, and sets the check of a task's script. Raise SpecError
        for a job that the scheduler does not support.
        """
        raise NotImplementedError

    @_first
    def parse_log(self, run: Run[Any] | None) -> LogParser | None:
        """Return a new parser for the scheduler's own messages in a job's log, or None if it writes none.

        ``run`` is None for a log without a record, of which only the end is parsed.
        """
        return None

    @_first
    def peak_flops(self, gpu_type: str, dtype: str, target: Target[OptionsT]) -> float | None:
        """Return the dense peak, in FLOP/s, of the target's own GPUs, derived from ``target.facts``, or None."""
        return None

    @_first
    def diagnose(self) -> Iterable[Signature]:
        """Return the causes of failure that the scheduler and its launchers report, each identified by a text.

        They apply to every log, because a log without a record does not name its scheduler.
        """
        return ()

    @_first
    def probe(self, target: Target[OptionsT]) -> str:
        """Return a bash script that prints ``key=value`` lines about the target. They become ``target.facts``."""
        return ""

    @_first
    def checks(self, target: Target[OptionsT], host: Host, scripts: Sequence[Script]) -> Sequence[DoctorCheck]:
        """Return the checks of ``llmb doctor`` for this target, from ``target.facts`` and from commands on the host.

        ``scripts`` are the jobs of a spec, in order to check whether the scheduler would accept them. They are empty if
        ``llmb doctor`` has no spec.
        """
        return ()

    @_first
    def check_job(self, job: Job, target: Target[OptionsT]) -> Sequence[DoctorCheck]:
        """Return the checks of ``llmb doctor`` for a job on this target, from ``target.facts`` alone.

        The target has the complete facts of `probe`. A check that cannot be made has ``ok=None`` and the reason. A
        failed check with the name "GPU type" means that the target has GPUs of other types only.
        """
        return ()

    @_first
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Submit jobs, and return a handle for each id. A job that was submitted before is not submitted again.

        The secrets of each script are in its directory already (`Script`). A job that the scheduler rejects is a handle
        with ``refused``. Raise TargetError if no job was submitted: core then removes the secrets, and runs that were
        just started fail. Raise BusyError, a TargetError, if another process prevented the submission: a later attempt
        may succeed. Raise UnknownOutcomeError if some jobs were submitted, or may have been.
        """
        raise NotImplementedError

    @_first
    def poll(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """Query the status of all jobs with one command, and return a status for each id.

        Raise TargetError if the scheduler cannot be queried.
        """
        raise NotImplementedError

    @_first
    def history(self, handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobHistory]:
        """Return the attempts of jobs that are over, and who cancelled them, for each id that the scheduler knows.

        Do not wait for a history that is not complete yet: return it with ``pending``, and core tries again. llmb
        completes the history with what the job itself recorded (``Script.attempts_file``) and with the times at which
        llmb saw the job. Raise TargetError if the scheduler cannot be queried now: llmb tries again.
        """
        return {}

    @_first
    def cancel(self, handles: Sequence[JobHandle], host: Host) -> None:
        """Cancel these jobs and no others. Jobs that have ended are left unchanged.

        Core calls this hook again if the user cancels a run a second time: kill that job without a grace period.
        """
        raise NotImplementedError


@runtime_checkable
class ReportRenderer(Protocol):
    """A function that writes a report in one format."""

    def __call__(self, report: Report, /) -> str:
        """Return the complete text of the file."""


class ExtensionHooks(Protocol):
    """An extension, which adds data to every run and formats to reports, for any framework and scheduler."""

    @_first
    def accelerators(self) -> Iterable[Accelerator]:
        """Return GPU types that core's table lacks, or that replace GPU types of that table."""
        return ()

    @_first
    def diagnose(self) -> Iterable[Signature]:
        """Return further causes of failure, each identified by a text in the log."""
        return ()

    @_first
    def report(self) -> Mapping[str, ReportRenderer]:
        """Return the formats of ``llmb report -o``: by suffix, such as ".html", a function that writes the text."""
        return {}


KINDS: Mapping[str, Any] = {
    "framework": FrameworkHooks,
    "scheduler": SchedulerHooks,
    "extension": ExtensionHooks,
}
"""The hooks of each kind of plugin. The entry-point group is ``llmb.`` and the plural of the kind."""

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "framework": ("build_job", "parse_log"),
    "scheduler": ("build_job", "submit", "poll", "cancel"),
    "extension": (),
}
"""The hooks without a default, by kind. llmb rejects a plugin that does not implement all of them."""
