"""Benchmark the training of large language models: one spec, one run, one record.

As a library: `load` a workload spec, `run` it, `parse` a log, compute `metrics`. For plugins: the hook
specifications and the values that cross them. Everything public is named here, and nothing else is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmb.engine.doctor import doctor as doctor
    from llmb.engine.index import list_runs as list_runs
    from llmb.engine.observe import Observer as Observer
    from llmb.engine.observe import Progress as Progress
    from llmb.engine.parsing import ParsedLog as ParsedLog
    from llmb.engine.plan import PlannedRun as PlannedRun
    from llmb.engine.plan import PlannedTask as PlannedTask
    from llmb.engine.plan import plan as plan
    from llmb.engine.result import RunResult as RunResult
    from llmb.engine.result import find_run as find_run
    from llmb.engine.runs import Session as Session
    from llmb.engine.runs import cancel as cancel
    from llmb.engine.runs import resume as resume
    from llmb.engine.runs import start as start
    from llmb.figures.metrics import Comparison as Comparison
    from llmb.figures.metrics import Metrics as Metrics
    from llmb.figures.window import Summary as Summary
    from llmb.hookspecs import ExtensionHooks as ExtensionHooks
    from llmb.hookspecs import FrameworkHooks as FrameworkHooks
    from llmb.hookspecs import Host as Host
    from llmb.hookspecs import SchedulerHooks as SchedulerHooks
    from llmb.hookspecs import hookimpl as hookimpl
    from llmb.hosts.detached import cancel_detached as cancel_detached
    from llmb.hosts.detached import poll_detached as poll_detached
    from llmb.hosts.detached import submit_detached as submit_detached
    from llmb.hosts.venv import venv_folder as venv_folder
    from llmb.hosts.venv import venv_task as venv_task
    from llmb.jobs.bash import assignments as assignments
    from llmb.jobs.bash import environment_function as environment_function
    from llmb.jobs.bash import script_template as script_template
    from llmb.jobs.bash import task_functions as task_functions
    from llmb.jobs.nsys import Nsys as Nsys
    from llmb.jobs.shipped import shipped_text as shipped_text
    from llmb.jobs.squashfs import squashfs_check as squashfs_check
    from llmb.jobs.squashfs import squashfs_functions as squashfs_functions
    from llmb.library import load as load
    from llmb.library import metrics as metrics
    from llmb.library import parse as parse
    from llmb.library import run as run
    from llmb.logs.lines import LineParser as LineParser
    from llmb.logs.series import StepSeries as StepSeries
    from llmb.logs.status import LogStatus as LogStatus
    from llmb.plugins.find import FoundPlugin as FoundPlugin
    from llmb.plugins.listing import ListedPlugin as ListedPlugin
    from llmb.plugins.listing import list_plugins as list_plugins
    from llmb.plugins.pool import PluginPool as PluginPool
    from llmb.plugins.recipes import load_recipe as load_recipe
    from llmb.plugins.recipes import recipe_addresses as recipe_addresses
    from llmb.spec.scalars import Duration as Duration
    from llmb.spec.scalars import PositiveFloat as PositiveFloat
    from llmb.spec.scalars import PositiveInt as PositiveInt
    from llmb.values.check import Check as Check
    from llmb.values.errors import Fault as Fault
    from llmb.values.errors import LlmbError as LlmbError
    from llmb.values.errors import LogError as LogError
    from llmb.values.errors import PluginError as PluginError
    from llmb.values.errors import PluginWarning as PluginWarning
    from llmb.values.errors import RecipeError as RecipeError
    from llmb.values.errors import RecordError as RecordError
    from llmb.values.errors import SpecError as SpecError
    from llmb.values.errors import TargetError as TargetError
    from llmb.values.errors import UnknownOutcomeError as UnknownOutcomeError
    from llmb.values.failure import Failure as Failure
    from llmb.values.failure import Signature as Signature
    from llmb.values.faults import shown as shown
    from llmb.values.frozen import FrozenMap as FrozenMap
    from llmb.values.frozen import content_key as content_key
    from llmb.values.frozen import merged as merged
    from llmb.values.host import Answer as Answer
    from llmb.values.job import Dataset as Dataset
    from llmb.values.job import Environment as Environment
    from llmb.values.job import Image as Image
    from llmb.values.job import Job as Job
    from llmb.values.job import Mount as Mount
    from llmb.values.job import Phase as Phase
    from llmb.values.job import Ranks as Ranks
    from llmb.values.job import Repository as Repository
    from llmb.values.job import Script as Script
    from llmb.values.job import Task as Task
    from llmb.values.job import Venv as Venv
    from llmb.values.log_files import LogFiles as LogFiles
    from llmb.values.model import Accelerator as Accelerator
    from llmb.values.model import FlopFormula as FlopFormula
    from llmb.values.model import Model as Model
    from llmb.values.model import Parallelism as Parallelism
    from llmb.values.nearest import nearest_name as nearest_name
    from llmb.values.recipe import Baseline as Baseline
    from llmb.values.recipe import MfuSource as MfuSource
    from llmb.values.recipe import Point as Point
    from llmb.values.recipe import Recipe as Recipe
    from llmb.values.recipe import Window as Window
    from llmb.values.refusals import decided_elsewhere as decided_elsewhere
    from llmb.values.refusals import decided_env as decided_env
    from llmb.values.refusals import decided_faults as decided_faults
    from llmb.values.refusals import degree_faults as degree_faults
    from llmb.values.refusals import expert_faults as expert_faults
    from llmb.values.refusals import query_group_faults as query_group_faults
    from llmb.values.refusals import sequence_faults as sequence_faults
    from llmb.values.run import Paths as Paths
    from llmb.values.run import Profile as Profile
    from llmb.values.run import ProfileTool as ProfileTool
    from llmb.values.run import Run as Run
    from llmb.values.run import Target as Target
    from llmb.values.settings import key_values as key_values
    from llmb.values.settings import with_paths as with_paths
    from llmb.values.status import Cause as Cause
    from llmb.values.status import JobState as JobState
    from llmb.values.status import JobStatus as JobStatus
    from llmb.values.status import RunState as RunState
    from llmb.values.status import Ticket as Ticket
    from llmb.values.status import Verdict as Verdict
    from llmb.values.steps import LogParser as LogParser
    from llmb.values.steps import Notice as Notice
    from llmb.values.steps import NoticeKind as NoticeKind
    from llmb.values.steps import Step as Step
    from llmb.values.workload import PlacedRun as PlacedRun
    from llmb.values.workload import Workload as Workload
    from llmb.values.workload import Written as Written
    from llmb.version import VERSION as VERSION

# Where each public name is defined. It is imported when it is first asked for, so that `import llmb` costs nothing
# that is not used.
_MODULES = {
    "llmb.engine.doctor": ("doctor",),
    "llmb.engine.index": ("list_runs",),
    "llmb.engine.observe": ("Observer", "Progress"),
    "llmb.engine.parsing": ("ParsedLog",),
    "llmb.engine.plan": ("PlannedRun", "PlannedTask", "plan"),
    "llmb.engine.result": ("RunResult", "find_run"),
    "llmb.engine.runs": ("Session", "cancel", "resume", "start"),
    "llmb.figures.metrics": ("Comparison", "Metrics"),
    "llmb.figures.window": ("Summary",),
    "llmb.hookspecs": ("ExtensionHooks", "FrameworkHooks", "Host", "SchedulerHooks", "hookimpl"),
    "llmb.hosts.detached": ("cancel_detached", "poll_detached", "submit_detached"),
    "llmb.hosts.venv": ("venv_folder", "venv_task"),
    "llmb.jobs.bash": ("assignments", "environment_function", "script_template", "task_functions"),
    "llmb.jobs.nsys": ("Nsys",),
    "llmb.jobs.shipped": ("shipped_text",),
    "llmb.jobs.squashfs": ("squashfs_check", "squashfs_functions"),
    "llmb.library": ("load", "metrics", "parse", "run"),
    "llmb.logs.lines": ("LineParser",),
    "llmb.logs.series": ("StepSeries",),
    "llmb.logs.status": ("LogStatus",),
    "llmb.plugins.find": ("FoundPlugin",),
    "llmb.plugins.listing": ("ListedPlugin", "list_plugins"),
    "llmb.plugins.pool": ("PluginPool",),
    "llmb.plugins.recipes": ("load_recipe", "recipe_addresses"),
    "llmb.spec.scalars": ("Duration", "PositiveFloat", "PositiveInt"),
    "llmb.values.check": ("Check",),
    "llmb.values.errors": (
        "Fault",
        "LlmbError",
        "LogError",
        "PluginError",
        "PluginWarning",
        "RecipeError",
        "RecordError",
        "SpecError",
        "TargetError",
        "UnknownOutcomeError",
    ),
    "llmb.values.failure": ("Failure", "Signature"),
    "llmb.values.faults": ("shown",),
    "llmb.values.frozen": ("FrozenMap", "content_key", "merged"),
    "llmb.values.host": ("Answer",),
    "llmb.values.job": (
        "Dataset",
        "Environment",
        "Image",
        "Job",
        "Mount",
        "Phase",
        "Ranks",
        "Repository",
        "Script",
        "Task",
        "Venv",
    ),
    "llmb.values.log_files": ("LogFiles",),
    "llmb.values.model": ("Accelerator", "FlopFormula", "Model", "Parallelism"),
    "llmb.values.nearest": ("nearest_name",),
    "llmb.values.recipe": ("Baseline", "MfuSource", "Point", "Recipe", "Window"),
    "llmb.values.refusals": (
        "decided_elsewhere",
        "decided_env",
        "decided_faults",
        "degree_faults",
        "expert_faults",
        "query_group_faults",
        "sequence_faults",
    ),
    "llmb.values.run": ("Paths", "Profile", "ProfileTool", "Run", "Target"),
    "llmb.values.settings": ("key_values", "with_paths"),
    "llmb.values.status": ("Cause", "JobState", "JobStatus", "RunState", "Ticket", "Verdict"),
    "llmb.values.steps": ("LogParser", "Notice", "NoticeKind", "Step"),
    "llmb.values.workload": ("PlacedRun", "Workload", "Written"),
    "llmb.version": ("VERSION",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)  # computed, so that a name is written once


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"llmb has no public name {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
