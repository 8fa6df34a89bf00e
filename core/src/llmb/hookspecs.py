"""The hooks of the three kinds of plugin.

Each Protocol is the specification, the type and the documentation of its kind at once. A plugin inherits from it
(``class MyTrainer(FrameworkHooks[MyOptions])``), so that a type checker names what is missing, and marks what it
implements with `hookimpl`. A hook that a plugin does not implement answers with the Protocol's own default.

Hooks take values and return values; the effects are the core's. Values grow fields, hooks grow arguments at most;
nothing is renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import pluggy

from llmb.values.command_result import CommandResult
from llmb.values.doctor_check import DoctorCheck
from llmb.values.failure import Signature
from llmb.values.job import Dataset, Environment, Job, Script, Task
from llmb.values.job_status import JobHandle, JobStatus
from llmb.values.log_files import LogFiles
from llmb.values.model import Accelerator
from llmb.values.recipe import Window
from llmb.values.run import Run, Target
from llmb.values.steps import LogParser

OptionsT = TypeVar("OptionsT")

hookspec = pluggy.HookspecMarker("llmb")
hookimpl = pluggy.HookimplMarker("llmb")
_first = hookspec(firstresult=True)


class Host(Protocol):
    """The machine on which commands run: this one, or one behind SSH."""

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        """Run bash there. A command that fails is an answer.

        Raises TargetError where one cannot ask, and UnknownOutcomeError, which is one, where the command may have been
        done: it did not end within ``timeout_s``, or the connection was lost meanwhile.
        """

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        """Place text files, each whole or not at all; folders are made."""

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        """What many files hold beyond an offset, in one command; at most a few MiB of each at a time.

        A file that is not there, or that has nothing new, is left out.
        """

    def peer(self, name: str) -> Host:
        """Another machine, as ``ssh`` where llmb runs knows it; its connection is kept as long as this one.

        For schedulers that start a job's processes on several machines themselves. Nothing is connected before
        something is asked there.
        """


class FrameworkHooks(Protocol[OptionsT]):
    """What a training framework knows: its environment, its data, its command, its log. It knows no scheduler."""

    options: type[OptionsT]
    """The attrs class of the spec's [framework] table; every field has a default.

    With an option that is not its default a run is not comparable with the baseline, unless the field's metadata say
    ``{"comparable": True}``.
    """

    window: Window = "last"
    """The measuring window of a log whose recipe is not known."""

    log_files: LogFiles = LogFiles()
    """Which files of a directory are logs, and where they lie when nobody says so."""

    @_first
    def prepare_env(self, run: Run[OptionsT]) -> Environment:
        """The image or virtual environment in which the run's command works, and the secrets that it needs."""
        return Environment()

    @_first
    def prepare_dataset(self, run: Run[OptionsT]) -> Dataset | None:
        """Tasks that make the training data, each with the check that it is whole; null for synthetic data."""
        return None

    @_first
    def build_job(self, run: Run[OptionsT]) -> Job:
        """The run as a neutral job. Raises SpecError for what the framework cannot do.

        The core fills in ``environment``, with what `prepare_env` answers, and adds the spec's [env] and [mounts].
        """
        raise NotImplementedError

    @_first
    def parse_log(self, run: Run[OptionsT] | None) -> LogParser:
        """A fresh parser for one log of this framework; ``run`` is null for a log that someone else made."""
        raise NotImplementedError

    @_first
    def peak_flops(self, gpu_type: str, dtype: str) -> float | None:
        """Dense peak in FLOP/s of a GPU type and dtype that the core's table lacks."""
        return None


class SchedulerHooks(Protocol[OptionsT]):
    """What a scheduler knows: how to start, watch and end a job on its machines. It knows no framework."""

    options: type[OptionsT]
    """The attrs class of the keys of [target] beyond the core's own; a field without a default must be stated."""

    single_node: bool = False
    """All GPUs of a run are on one machine, however many there are."""

    poll_interval_s: tuple[float, float] = (2.0, 30.0)
    """How long to wait between two polls: at first, and at most, while nothing changes."""

    @_first
    def host(self, target: Target[OptionsT]) -> str | None:
        """The machine through which the target is reached, null for this one; as a rule what [target] says.

        Raises SpecError, at the key ``target.host``, where the scheduler has no jobs on such a machine.
        """
        return target.host

    @_first
    def prepare_env(self, environment: Environment, target: Target[OptionsT]) -> tuple[Task, ...]:
        """Tasks by which the environment comes to be on this target."""
        return ()

    @_first
    def prepare_dataset(self, dataset: Dataset, target: Target[OptionsT]) -> Dataset:
        """The data's tasks as they run here; as a rule unchanged."""
        return dataset

    @_first
    def build_job(self, job: Job, target: Target[OptionsT]) -> Script:
        """The text that the scheduler takes. Pure: a dry run prints it. Raises SpecError for what it cannot do.

        The core adds the job's ``secrets`` to those that the scheduler itself needs, and fills in a task's ``check``.
        """
        raise NotImplementedError

    @_first
    def parse_log(self, run: Run[Any] | None) -> LogParser | None:
        """A fresh parser of the scheduler's own messages in a job's log; null where it writes none.

        ``run`` is null for a log that someone else made, of which only the end is read.
        """
        return None

    @_first
    def peak_flops(self, gpu_type: str, dtype: str, target: Target[OptionsT]) -> float | None:
        """Dense peak in FLOP/s of the machine at hand, from what the probe found."""
        return None

    @_first
    def probe(self, target: Target[OptionsT]) -> str:
        """Bash that prints ``key=value`` lines about the target; they become ``target.facts``."""
        return ""

    @_first
    def checks(self, target: Target[OptionsT], host: Host) -> Sequence[DoctorCheck]:
        """What ``llmb doctor`` tells of the target, from what the probe found there, and from what else it asks."""
        return ()

    @_first
    def submit(self, scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
        """Start many jobs. Idempotent by id: what was submitted before is not submitted again.

        Secrets lie in each script's directory already (`Script`). Raises TargetError where nothing was submitted, whose
        secrets are removed then, and UnknownOutcomeError where some jobs were submitted, or may have been.
        """
        raise NotImplementedError

    @_first
    def poll(self, tickets: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
        """How many jobs stand, by one question. Raises TargetError where one cannot ask."""
        raise NotImplementedError

    @_first
    def cancel(self, tickets: Sequence[JobHandle], host: Host) -> None:
        """End these jobs and no others. Those that have ended already are left alone.

        It is called again for a run whose user asks again: that job need be given no more time to end by itself.
        """
        raise NotImplementedError


class ExtensionHooks(Protocol):
    """What an extension adds to every run, whatever its framework and scheduler."""

    @_first
    def accelerators(self) -> Iterable[Accelerator]:
        """GPU types that the core's table lacks, or that replace those there."""
        return ()

    @_first
    def diagnose(self) -> Iterable[Signature]:
        """Further causes of failure, each known by a text in the log."""
        return ()


KINDS: Mapping[str, Any] = {
    "framework": FrameworkHooks,
    "scheduler": SchedulerHooks,
    "extension": ExtensionHooks,
}
"""The kinds of plugin; the entry-point group is ``llmb.`` and the plural."""

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "framework": ("build_job", "parse_log"),
    "scheduler": ("build_job", "submit", "poll", "cancel"),
    "extension": (),
}
"""The hooks without a default: a plugin of the kind that lacks one is refused before anything is done with it."""
