"""The training phase: NeMo's program with its configuration, under a profiler where one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from llmb import FrozenMap, Mount, Phase, Profile, Run
from llmb_nemo_launcher.config import config_file, overrides, profiled_ranks
from llmb_nemo_launcher.settings import placed, places


def train_phase(run: Run[Any]) -> Phase:
    """One process per GPU: wrapper, profiler, program, configuration, overrides."""
    settings, names, folder = run.settings, places(run), run.paths.run
    program = [
        *placed(settings["command"], names),
        f"--config-path={folder}/cfg",
        f"--config-name={settings['config_name']}",
        *overrides(run),
    ]
    folders, profiler = [f"{folder}/results", names["index_mapping"]], list[str]()
    env: dict[str, str] = {}
    if run.profile and run.profile.tool == "nsys":
        folders.append(f"{folder}/nsys")
        profiler = _nsys(run, run.profile)
    elif run.profile:
        folders.append(f"{folder}/nccl-trace")
        env = placed(settings["nccl-trace"]["env"], names)
    wrapper = ("bash", f"{folder}/nemo.sh", names["nemo"], *folders, "--")
    return Phase(name="train", command=(*wrapper, *profiler, *program), env=FrozenMap(env), outputs=_reports(run))


def _nsys(run: Run[Any], profile: Profile) -> list[str]:
    settings = run.settings["nsys"]
    metrics = settings["gpu_metrics"] if profile.gpu_metrics else ""
    options = [*settings["options"], *settings["with_cpu" if profile.cpu else "without_cpu"]]
    ranks = ",".join(map(str, profiled_ranks(run)))
    return ["bash", f"{run.paths.run}/nsys.sh", _prefix(run), ranks, metrics, *options, "--"]


def _prefix(run: Run[Any]) -> str:
    settings = run.settings
    return f"{run.paths.run}/nsys/{settings['model']}-{settings['size']}-{run.dtype}_{run.gpus}g_{run.id}"


def _reports(run: Run[Any]) -> tuple[str, ...]:
    """What every rank that is captured must leave: a capture without its reports is none."""
    if run.profile is None or run.profile.tool != "nsys":
        return ()
    places_of_ranks = (divmod(rank, run.gpus_per_node) for rank in profiled_ranks(run))
    return tuple(f"{_prefix(run)}_{node}_{local}.nsys-rep" for node, local in places_of_ranks)


def job_files(run: Run[Any]) -> Mapping[str, str]:
    """The configuration and the wrappers."""
    folder, shipped = run.paths.run, files("llmb_nemo_launcher")
    names = ["nemo.sh", *(["nsys.sh"] if run.profile and run.profile.tool == "nsys" else [])]
    texts = {f"{folder}/cfg/{run.settings['config_name']}": config_file(run)}
    return FrozenMap(texts | {f"{folder}/{name}": shipped.joinpath(name).read_text(encoding="utf-8") for name in names})


def job_env(run: Run[Any]) -> Mapping[str, str]:
    """The recipe's environment. Every process must see all GPUs of its node, of which Lightning gives it one."""
    visible = ",".join(map(str, range(run.gpus_per_node)))
    return FrozenMap({**run.settings["env"], "CUDA_VISIBLE_DEVICES": visible})


def job_mounts(run: Run[Any]) -> tuple[Mount, ...]:
    """The index's folder, where it is neither the run's nor the cache's and so would not be seen in a container."""
    folder = run.options.index_mapping_dir
    return (Mount(source=folder, target=folder),) if folder else ()
