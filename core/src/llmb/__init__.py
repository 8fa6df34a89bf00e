"""Benchmark the training of large language models: one spec, one run, one record.

As a library: `load` a workload spec, `run` it, `parse` a log, compute `metrics`. For plugins: the hook
specifications and the values that cross them. Everything public is named here, and nothing else is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmb.analysis.metrics import Comparison as Comparison
    from llmb.analysis.metrics import Metrics as Metrics
    from llmb.analysis.window import Summary as Summary
    from llmb.api import list_recipes as list_recipes
    from llmb.api import load as load
    from llmb.api import loads as loads
    from llmb.api import metrics as metrics
    from llmb.api import parse as parse
    from llmb.api import parse_paths as parse_paths
    from llmb.api import run as run
    from llmb.doctor_checks import doctor as doctor
    from llmb.drive.events import AttemptStarted as AttemptStarted
    from llmb.drive.events import CancelSent as CancelSent
    from llmb.drive.events import Ended as Ended
    from llmb.drive.events import Event as Event
    from llmb.drive.events import JobEnded as JobEnded
    from llmb.drive.events import Note as Note
    from llmb.drive.events import Planned as Planned
    from llmb.drive.events import Preparing as Preparing
    from llmb.drive.events import Progress as Progress
    from llmb.drive.events import Queued as Queued
    from llmb.drive.events import Running as Running
    from llmb.drive.events import Skipped as Skipped
    from llmb.drive.events import SubmissionUnanswered as SubmissionUnanswered
    from llmb.drive.events import Submitting as Submitting
    from llmb.drive.events import TargetBack as TargetBack
    from llmb.drive.events import TargetLost as TargetLost
    from llmb.drive.index import list_runs as list_runs
    from llmb.drive.observe import Observer as Observer
    from llmb.drive.record import steps_csv as steps_csv
    from llmb.drive.result import RunResult as RunResult
    from llmb.drive.result import find_run as find_run
    from llmb.drive.runs import Session as Session
    from llmb.drive.runs import attach as attach
    from llmb.drive.runs import cancel as cancel
    from llmb.drive.runs import start as start
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
    from llmb.logs.lines import LineParser as LineParser
    from llmb.logs.series import StepSeries as StepSeries
    from llmb.logs.status import LogStatus as LogStatus
    from llmb.parsing.directories import ParsedPath as ParsedPath
    from llmb.parsing.directories import PassedOver as PassedOver
    from llmb.parsing.parse import ParsedLog as ParsedLog
    from llmb.paths import home_folder as home_folder
    from llmb.planning import RunPlan as RunPlan
    from llmb.planning import TaskPlan as TaskPlan
    from llmb.planning import plan as plan
    from llmb.plugins.find import PluginEntry as PluginEntry
    from llmb.plugins.list import PluginInfo as PluginInfo
    from llmb.plugins.list import list_plugins as list_plugins
    from llmb.plugins.recipe_files import load_recipe as load_recipe
    from llmb.plugins.recipe_files import recipe_addresses as recipe_addresses
    from llmb.plugins.registry import PluginRegistry as PluginRegistry
    from llmb.scripts.bash import assignments as assignments
    from llmb.scripts.bash import environment_function as environment_function
    from llmb.scripts.bash import script_template as script_template
    from llmb.scripts.bash import task_functions as task_functions
    from llmb.scripts.nsys import Nsys as Nsys
    from llmb.scripts.resources import resource_text as resource_text
    from llmb.scripts.squashfs import squashfs_check as squashfs_check
    from llmb.scripts.squashfs import squashfs_functions as squashfs_functions
    from llmb.spec.scalars import Duration as Duration
    from llmb.spec.scalars import PositiveFloat as PositiveFloat
    from llmb.spec.scalars import PositiveInt as PositiveInt
    from llmb.spec.starter_workload import starter_workload as starter_workload
    from llmb.values.command_result import CommandResult as CommandResult
    from llmb.values.constraints import check_experts as check_experts
    from llmb.values.constraints import check_query_groups as check_query_groups
    from llmb.values.constraints import check_sequence as check_sequence
    from llmb.values.constraints import forbid_env as forbid_env
    from llmb.values.constraints import forbid_key as forbid_key
    from llmb.values.constraints import forbid_options as forbid_options
    from llmb.values.constraints import unsupported_degrees as unsupported_degrees
    from llmb.values.doctor_check import DoctorCheck as DoctorCheck
    from llmb.values.error_text import shown as shown
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
    from llmb.values.frozen import FrozenMap as FrozenMap
    from llmb.values.frozen import content_key as content_key
    from llmb.values.frozen import merged as merged
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
    from llmb.values.job_status import END_STATES as END_STATES
    from llmb.values.job_status import Cause as Cause
    from llmb.values.job_status import JobHandle as JobHandle
    from llmb.values.job_status import JobState as JobState
    from llmb.values.job_status import JobStatus as JobStatus
    from llmb.values.job_status import RunState as RunState
    from llmb.values.job_status import Verdict as Verdict
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
    from llmb.values.recipe_settings import key_values as key_values
    from llmb.values.recipe_settings import with_paths as with_paths
    from llmb.values.run import Paths as Paths
    from llmb.values.run import Profile as Profile
    from llmb.values.run import ProfileTool as ProfileTool
    from llmb.values.run import Run as Run
    from llmb.values.run import Target as Target
    from llmb.values.steps import LogParser as LogParser
    from llmb.values.steps import Notice as Notice
    from llmb.values.steps import NoticeKind as NoticeKind
    from llmb.values.steps import Step as Step
    from llmb.values.workload import RunSpec as RunSpec
    from llmb.values.workload import SourceMap as SourceMap
    from llmb.values.workload import Workload as Workload
    from llmb.version import VERSION as VERSION

# Where each public name is defined. It is imported when it is first asked for, so that `import llmb` costs nothing
# that is not used.
_MODULES = {
    "llmb.doctor_checks": ("doctor",),
    "llmb.drive.index": ("list_runs",),
    "llmb.drive.events": (
        "AttemptStarted",
        "CancelSent",
        "Ended",
        "Event",
        "JobEnded",
        "Note",
        "Planned",
        "Preparing",
        "Progress",
        "Queued",
        "Running",
        "Skipped",
        "SubmissionUnanswered",
        "Submitting",
        "TargetBack",
        "TargetLost",
    ),
    "llmb.drive.observe": ("Observer",),
    "llmb.parsing.directories": ("ParsedPath", "PassedOver"),
    "llmb.parsing.parse": ("ParsedLog",),
    "llmb.paths": ("home_folder",),
    "llmb.planning": ("RunPlan", "TaskPlan", "plan"),
    "llmb.drive.record": ("steps_csv",),
    "llmb.drive.result": ("RunResult", "find_run"),
    "llmb.drive.runs": ("Session", "attach", "cancel", "start"),
    "llmb.analysis.metrics": ("Comparison", "Metrics"),
    "llmb.analysis.window": ("Summary",),
    "llmb.hookspecs": ("ExtensionHooks", "FrameworkHooks", "Host", "SchedulerHooks", "hookimpl"),
    "llmb.hosts.detached": ("cancel_detached", "poll_detached", "submit_detached"),
    "llmb.hosts.venv": ("venv_folder", "venv_task"),
    "llmb.scripts.bash": ("assignments", "environment_function", "script_template", "task_functions"),
    "llmb.scripts.nsys": ("Nsys",),
    "llmb.scripts.resources": ("resource_text",),
    "llmb.scripts.squashfs": ("squashfs_check", "squashfs_functions"),
    "llmb.api": ("list_recipes", "load", "loads", "metrics", "parse", "parse_paths", "run"),
    "llmb.logs.lines": ("LineParser",),
    "llmb.logs.series": ("StepSeries",),
    "llmb.logs.status": ("LogStatus",),
    "llmb.plugins.find": ("PluginEntry",),
    "llmb.plugins.list": ("PluginInfo", "list_plugins"),
    "llmb.plugins.registry": ("PluginRegistry",),
    "llmb.plugins.recipe_files": ("load_recipe", "recipe_addresses"),
    "llmb.spec.scalars": ("Duration", "PositiveFloat", "PositiveInt"),
    "llmb.spec.starter_workload": ("starter_workload",),
    "llmb.values.doctor_check": ("DoctorCheck",),
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
    "llmb.values.error_text": ("shown",),
    "llmb.values.frozen": ("FrozenMap", "content_key", "merged"),
    "llmb.values.command_result": ("CommandResult",),
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
    "llmb.values.constraints": (
        "forbid_key",
        "forbid_env",
        "forbid_options",
        "unsupported_degrees",
        "check_experts",
        "check_query_groups",
        "check_sequence",
    ),
    "llmb.values.run": ("Paths", "Profile", "ProfileTool", "Run", "Target"),
    "llmb.values.recipe_settings": ("key_values", "with_paths"),
    "llmb.values.job_status": ("Cause", "END_STATES", "JobState", "JobStatus", "RunState", "JobHandle", "Verdict"),
    "llmb.values.steps": ("LogParser", "Notice", "NoticeKind", "Step"),
    "llmb.values.workload": ("RunSpec", "Workload", "SourceMap"),
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
