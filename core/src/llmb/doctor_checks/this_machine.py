"""Checks of the machine on which llmb runs: its records, its plugins and the user's settings."""

import os
import shlex
import shutil

from llmb.drive.notify import read_notify_command, settings_file
from llmb.hookspecs import DoctorCheck
from llmb.hosts.free_space import GB
from llmb.paths import home_folder
from llmb.plugins.installed_names import plugin_packages
from llmb.plugins.registry import PluginInfo, PluginRegistry
from llmb.records.create_records import records_problem
from llmb.values.errors import SpecError

MIN_FREE_GB = 1.0
"""Free disk space that records and logs need."""


def check_this_machine(registry: PluginRegistry) -> list[DoctorCheck]:
    """Return the checks of records, plugins and settings."""
    return [_check_records(), *_check_plugins(registry), *_check_settings()]


def _check_records() -> DoctorCheck:
    """Check whether runs can be recorded."""
    folder = home_folder()
    if problem := records_problem():
        remedy = "name another folder: `export LLMB_HOME=/path/to/folder`"
        return DoctorCheck(name="records", ok=False, detail=problem, remedy=remedy)
    nearest = next(each for each in (folder, *folder.parents) if os.path.exists(each))
    free_gb = shutil.disk_usage(nearest).free / GB
    sizes = f"`du -xh -d 1 {shlex.quote(str(nearest))} | sort -h`"
    remedy = f"free at least {MIN_FREE_GB:g} GB; {sizes} lists the sizes" if free_gb < MIN_FREE_GB else ""
    return DoctorCheck(name="records", ok=not remedy, detail=f"{folder}, {free_gb:.0f} GB free", remedy=remedy)


def _check_plugins(registry: PluginRegistry) -> list[DoctorCheck]:
    plugins = registry.plugins()
    if not plugins:
        remedy = f"install the packages that you need: {', '.join(plugin_packages().values())}"
        return [DoctorCheck(name="plugins", ok=False, detail="none is installed", remedy=remedy)]
    broken = [
        DoctorCheck(name=f"plugin {each.name}", ok=False, detail=each.error, remedy=_plugin_remedy(each))
        for each in plugins
        if each.error
    ]
    return broken or [DoctorCheck(name="plugins", ok=True, detail=f"{len(plugins)} installed, no errors")]


def _plugin_remedy(plugin: PluginInfo) -> str:
    if not plugin.distribution:  # a file of the configuration directory
        return "correct the file, or remove it"
    return f"`pip install --upgrade {plugin.distribution}`, or `pip uninstall {plugin.distribution}`"


def _check_settings() -> list[DoctorCheck]:
    """Check the command of [notify], which would otherwise fail only once a run ends."""
    file = settings_file()
    try:
        command = read_notify_command()
    except SpecError as error:
        return [DoctorCheck(name="settings", ok=False, detail=str(error), remedy=f"correct {file}")]
    if not command:
        return []
    if shutil.which(command[0]) is None:
        detail = f"{file}: notify.command: {command[0]} is not a command of this machine"
        return [DoctorCheck(name="settings", ok=False, detail=detail, remedy="install it, or give its full path")]
    return [DoctorCheck(name="settings", ok=True, detail=f"a run that ends starts {command[0]}")]
