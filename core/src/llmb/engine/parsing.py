"""Logs that somebody else made, read with a framework's parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from llmb.engine.log_end import how_it_ended
from llmb.engine.log_files import beginning, experiment, is_training_log, texts_below
from llmb.figures.numbers import stated_only
from llmb.figures.window import Summary, summarise
from llmb.hookspecs import FrameworkHooks
from llmb.logs.reading import feed_file
from llmb.logs.series import StepSeries
from llmb.logs.status import LogStatus
from llmb.plugins.pool import PluginPool
from llmb.values.errors import Fault, LlmbError, LogError, PluginError, located
from llmb.values.failure import Failure
from llmb.values.recipe import Window
from llmb.values.steps import Step

COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
"""How compressed files begin."""


@attrs.frozen(kw_only=True)
class ParsedLog:
    """One run: how far it got, its steps, the mean over the window, and why it broke if it did.

    Of one log, whose last run it is, or of the logs of one run's ranks. ``steps_asked`` is what the caller takes for a
    whole run, null where the log itself is believed.
    """

    paths: tuple[Path, ...]
    framework: str
    status: LogStatus
    series: StepSeries
    summary: Summary
    failure: Failure | None
    experiment: str
    steps_asked: int | None = None

    @property
    def path(self) -> Path:
        """The log, the first of several."""
        return self.paths[0]

    @property
    def succeeded(self) -> bool:
        """Whether it is a result: every step of the window, of a whole run.

        Where a window of steps is behind it, a run that goes on, or was cut off and nothing says that it broke, has
        its result too; unless the caller asked for more steps.
        """
        if not self.summary.complete:
            return False
        passed = self.summary.window != "last" and self.steps_asked is None and self.failure is None
        return self.status == "complete" or (self.status == "incomplete" and passed)

    def as_dict(self) -> dict[str, Any]:
        """As ``llmb parse --json`` prints it."""
        return {
            "framework": self.framework,
            "status": self.status,
            "steps": [_step(step) for step in self.series.steps],
            "summary": self.summary.as_dict(),
            "failure": attrs.asdict(self.failure) if self.failure else None,
        }


def _read_steps(framework: FrameworkHooks[Any], paths: Sequence[Path]) -> StepSeries:
    parser = framework.parse_log(run=None)
    series = StepSeries()
    for path in paths:
        try:
            feed_file(parser, path, 0, series.add)
        except OSError as error:
            raise LogError(Fault(message=f"cannot be read: {error.strerror}", file=str(path))) from error
    series.add(parser.close())
    series.first_step = parser.first_step  # it may be known by now
    return series


def parse_run(
    paths: Sequence[Path],
    name: str,
    pool: PluginPool,
    window: Window | None = None,
    steps_asked: int | None = None,
) -> ParsedLog:
    """Read the log of a run, or those of its ranks, to their present end.

    Raises LogError where one cannot be read, and PluginError where the framework's parser fails at it.
    """
    if not paths:
        raise LogError("no log is named")
    framework = pool.framework(name)
    with _naming(paths):
        series = _read_steps(framework, paths)
        status, failure = how_it_ended(paths, framework, pool, series, steps_asked)
        return ParsedLog(
            paths=tuple(paths),
            framework=name,
            status=status,
            series=series,
            summary=summarise(series.steps, window or framework.window),
            failure=failure,
            experiment=experiment(paths[0], framework.log_files),
            steps_asked=steps_asked,
        )


@contextmanager
def _naming(paths: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except PluginError as error:
        raise PluginError(*located(error.faults, str(paths[0]) if len(paths) == 1 else None)) from error


def parse_files(
    paths: Sequence[Path], name: str, pool: PluginPool, window: Window | None, steps_asked: int | None
) -> tuple[list[ParsedLog], LlmbError | None]:
    """Each log on its own; of a directory, the framework's training logs, and what else has a step of it.

    Besides them comes what stands in the way of others: logs that cannot be read, or at which a parser fails.
    """
    known, found, faults = pool.framework(name).log_files, list[ParsedLog](), list[Fault]()
    for path in paths:
        try:
            logs = list(texts_below(path, known)) if path.is_dir() else [path]
        except LogError as error:
            faults += error.faults
            continue
        for each in logs:
            try:
                log = parse_run([each], name, pool, window, steps_asked)
            except (LogError, PluginError) as error:
                faults += error.faults
                continue
            if each is path or log.status != "no_data" or is_training_log(each, known):
                found.append(log)
    return found, LogError(*faults) if faults else None


def why_no_data(path: Path, name: str, *, broke: bool) -> str:
    """What one can say of a log, or a directory of logs, in which there is not one step of this framework.

    ``broke``: it tells of a failure, which may have come before the first step.
    """
    if path.is_dir():
        return f"no file in it has a step of {name}"
    begin = beginning(path)
    if not begin:
        return "is empty"
    if kind := next((kind for magic, kind in COMPRESSED.items() if begin.startswith(magic)), None):
        return f"is compressed by {kind}; unpack it first"
    if b"\0" in begin:
        return f"is binary, and not a log of {name}"
    if broke:
        return f"no step of {name} is in it; it broke before the first, or is the log of another framework"
    return f"no step of {name} is in it; is it the log of another framework?"


def _step(step: Step) -> dict[str, Any]:
    """A step as JSON: what has a name of its own, then whatever else was printed; NaN is null."""
    named = ("step", "time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu", "mean_of")
    table = {name: getattr(step, name) for name in named} | dict(step.figures)
    stated: dict[str, Any] = stated_only(table)
    return stated
