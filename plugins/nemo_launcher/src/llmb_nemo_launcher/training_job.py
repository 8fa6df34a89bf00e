"""Training job: NeMo's program with its configuration, optionally captured by nsys or traced by NCCL."""

from collections.abc import Mapping
from typing import Any

from llmb import FrozenMap, Mount, Nsys, Phase, Run, resource_text, with_paths
from llmb_nemo_launcher.nemo_config import config_file, override_arguments
from llmb_nemo_launcher.recipe_placeholders import target_paths

WRAPPER = "nemo_rank_wrapper.sh"


def train_phase(run: Run[Any]) -> Phase:
    """Return the training phase, one process per GPU: wrapper, profiler, program, configuration and overrides."""
    settings, names, folder = run.settings, target_paths(run), run.paths.run
    program = (
        *with_paths(settings["command"], run.paths, names=names),
        f"--config-path={folder}/cfg",
        f"--config-name={settings['config_name']}",
        *override_arguments(run),
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
        trace = settings.get("nccl_trace") or settings["nccl-trace"]  # the name in older records
        env = with_paths(trace["env"], run.paths)
    wrapper = ("bash", f"{folder}/{WRAPPER}", names["nemo"], *folders, "--")
    return Phase(name="train", command=(*wrapper, *profiler, *program), env=FrozenMap(env), outputs=reports)


def _report(run: Run[Any]) -> str:
    """Return the path prefix of the nsys reports, with the name that the publisher uses."""
    return f"{run.paths.run}/nsys/{run.settings['model']}-{run.settings['size']}-{run.dtype}_{run.gpus}g_{run.id}"


def job_files(run: Run[Any]) -> Mapping[str, str]:
    """Return the configuration file and the wrapper scripts, by their paths."""
    folder = run.paths.run
    texts = {
        f"{folder}/cfg/{run.settings['config_name']}": config_file(run),
        f"{folder}/{WRAPPER}": resource_text(__package__, WRAPPER),
    }
    if run.profile and run.profile.tool == "nsys":
        texts |= Nsys.of(run.settings).files(run)
    return FrozenMap(texts)


def job_env(run: Run[Any]) -> Mapping[str, str]:
    """Return the recipe's environment and CUDA_VISIBLE_DEVICES with all GPUs of a node.

    Lightning selects one of the visible GPUs for each process.
    """
    visible = ",".join(map(str, range(run.gpus_per_node)))
    return FrozenMap({**run.settings["env"], "CUDA_VISIBLE_DEVICES": visible})


def job_mounts(run: Run[Any]) -> tuple[Mount, ...]:
    """Return a mount of ``index_mapping_dir`` if the spec sets it. Run folder and cache are mounted anyway."""
    folder = run.options.index_mapping_dir
    return (Mount(source=folder, target=folder),) if folder else ()
