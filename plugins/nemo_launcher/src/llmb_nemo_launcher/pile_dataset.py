"""Tasks that create the shards of the Pile with the three stages of NeMo Launcher, and their checks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from llmb import Environment, FrozenMap, Job, Phase, Run, Task, content_key, resource_text
from llmb_nemo_launcher.target_paths import target_paths
from llmb_nemo_launcher.training_job import WRAPPER

CHECK = "pile_check.sh"
STAGES = ("download", "extract", "preprocess")


def pile_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return one task per shard of the Pile. Each is a job on one node, and they may run at the same time."""
    shards = run.settings["dataset"]["shards"]
    return tuple(_shard_task(run, shard, concurrent=shard != shards[0]) for shard in shards)


def _shard_task(run: Run[Any], shard: int, *, concurrent: bool) -> Task:
    """Return the task that creates one shard, and the check of the created files.

    The job first removes the files of an earlier attempt, because the stages would treat them as complete.
    """
    settings, folder = run.settings["dataset"], target_paths(run)["dataset"]
    number = f"{shard:02d}"
    archive, text = f"{folder}/{number}.jsonl.zst", f"{folder}/{number}.jsonl"
    document = f"{folder}/{settings['name']}_{number}_text_document"
    results = (f"{document}.bin", f"{document}.idx")
    key = f"pile-{number}-{content_key(settings['url'], run.settings['tokenizer']['repository'], number)}"
    directory = f"{run.paths.cache}/data-preparation/{key}"
    clear = Phase(name="clear", command=("rm", "-f", "--", archive, text, *results), ranks="first", measured=False)
    stages = [
        _stage(run, shard, directory, stage, outputs)
        for stage, outputs in zip(STAGES, ((archive,), (text,), results), strict=True)
    ]
    job = Job(
        id=key,
        directory=directory,
        phases=(clear, *stages),
        nodes=1,
        tasks_per_node=1,
        gpus_per_node=0,
        environment=Environment(base=run.image),
        files=FrozenMap({f"{directory}/{WRAPPER}": resource_text(__package__, WRAPPER)}),
        time_limit_s=run.options.dataset_time_limit or settings["time_limit_s"],
    )
    check = f"# {document} is complete\n{resource_text(__package__, CHECK)}\nis_complete {shlex.quote(document)}"
    return Task(
        key=key,
        kind=f"shard {number} of the Pile",
        work=job,
        check=check,
        space_gb=settings["space_gb"] / len(settings["shards"]),
        concurrent=concurrent,
    )


def _stage(run: Run[Any], shard: int, directory: str, stage: str, outputs: Iterable[str]) -> Phase:
    """Return the phase of one stage, which processes one shard (``cluster_type=bcp``).

    The scripts exit with 0 even if they fail, so the phase requires the files that the stage must write.
    """
    settings, names = run.settings["dataset"], target_paths(run)
    arguments = {
        "cluster_type": "bcp",
        "data_config": settings["config"],
        "launcher_scripts_path": f"{run.options.launcher}/launcher_scripts",
        "data_dir": names["dataset"],
        "the_pile_url": settings["url"],
        "file_numbers": f"{shard}-{shard}",
        "rm_downloaded": True,
        "rm_extracted": True,
        "tokenizer_type": names["tokenizer"],
        "tokenizer_library": "huggingface",
        "tokenizer_model": None,  # the launcher writes None here, not Hydra's null
        "vocab_save_dir": None,
        "merges_save_dir": None,
        "hydra.run.dir": f"{directory}/{stage}",
        "hydra.output_subdir": "null",
    }
    sources = f"{run.options.launcher}/launcher_scripts"
    script = f"{sources}/nemo_launcher/collections/dataprep_scripts/pile_dataprep/{stage}.py"
    words = (f"{name}={value}" for name, value in arguments.items())
    return Phase(
        name=stage,
        command=("bash", f"{directory}/{WRAPPER}", sources, names["dataset"], "--", "python3", "-u", script, *words),
        measured=False,
        outputs=tuple(outputs),
    )
