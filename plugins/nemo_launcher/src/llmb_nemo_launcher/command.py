"""The training phase: NeMo's program with its configuration, under a profiler where one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmb import FrozenMap, Mount, Nsys, Phase, Run, resource_text, with_paths
from llmb_nemo_launcher.config import config_file, overrides
from llmb_nemo_launcher.places import places


def train_phase(run: Run[Any]) -> Phase:
    """One process per GPU: wrapper, profiler, program, configuration, overrides."""
    settings, names, folder = run.settings, places(run), run.paths.run
    program = (
        *with_paths(settings["command"], run.paths, names=names),
        f"--config-path={folder}/cfg",
        f"--config-name={settings['config_name']}",
        *overrides(run),
    )
    folders = [f"{folder}/results", names["index_mapping"]]
    profiler: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    env: dict[str, str] = {}
    if run.profile and run.profile.tool == "nsys":
        nsys = Nsys.of(settings)
        profiler, reports = nsys.words(run, _report(run)), nsys.reports(run, _report(run))
    elif run.profile:
        folders.append(f"{folder}/nccl-trace")
        env = with_paths(settings["nccl-trace"]["env"], run.paths)
    wrapper = ("bash", f"{folder}/nemo.sh", names["nemo"], *folders, "--")
    return Phase(name="train", command=(*wrapper, *profiler, *program), env=FrozenMap(env), outputs=reports)


def _report(run: Run[Any]) -> str:
    """The reports of nsys, under the names that the publisher gives them."""
    return f"{run.paths.run}/nsys/{run.settings['model']}-{run.settings['size']}-{run.dtype}_{run.gpus}g_{run.id}"


def job_files(run: Run[Any]) -> Mapping[str, str]:
    """The configuration and the wrappers."""
    folder = run.paths.run
    texts = {
        f"{folder}/cfg/{run.settings['config_name']}": config_file(run),
        f"{folder}/nemo.sh": resource_text(__package__, "nemo.sh"),
    }
    if run.profile and run.profile.tool == "nsys":
        texts |= Nsys.of(run.settings).files(run)
    return FrozenMap(texts)


def job_env(run: Run[Any]) -> Mapping[str, str]:
    """The recipe's environment. Every process must see all GPUs of its node, of which Lightning gives it one."""
    visible = ",".join(map(str, range(run.gpus_per_node)))
    return FrozenMap({**run.settings["env"], "CUDA_VISIBLE_DEVICES": visible})


def job_mounts(run: Run[Any]) -> tuple[Mount, ...]:
    """The index's folder, where it is neither the run's nor the cache's and so would not be seen in a container."""
    folder = run.options.index_mapping_dir
    return (Mount(source=folder, target=folder),) if folder else ()
