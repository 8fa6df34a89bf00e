"""The NeMo Launcher framework: its environment, its data, its command, its log."""

from __future__ import annotations

import attrs

from llmb import Environment, FrameworkHooks, LogParser, Run, hookimpl
from llmb_nemo_launcher.log import NeMoLog


@attrs.frozen(kw_only=True)
class NeMoLauncherOptions:
    """[framework]."""


class NeMoLauncher(FrameworkHooks[NeMoLauncherOptions]):
    """Trains with NeMo, as NeMo Launcher starts it: one process per GPU, a configuration composed by Hydra."""

    options = NeMoLauncherOptions

    @hookimpl
    def prepare_env(self, run: Run[NeMoLauncherOptions]) -> Environment:
        """The recipe's image."""
        return Environment(base=run.image)

    @hookimpl
    def parse_log(self, run: Run[NeMoLauncherOptions] | None) -> LogParser:
        """A parser of NeMo's bars and lines; a recipe tells over how many steps its times are averaged."""
        return NeMoLog() if run is None else NeMoLog(run.settings.get("step_timing_buffer", 1))
