"""Task that creates the Pile with the three stages of NeMo Launcher, and the check that it is complete."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from llmb import Environment, FrozenMap, Job, Phase, Run, Task, content_key, resource_text
from llmb_nemo_launcher.target_paths import target_paths
from llmb_nemo_launcher.training_job import WRAPPER

CHECK = "pile_check.sh"
STAGES = ("download", "extract", "preprocess")


def pile_task(run: Run[Any]) -> Task:
    """Return the task that creates the Pile with one node per shard, and the check of the created files.

    The job first removes the files of an earlier attempt, because the stages would treat them as complete.
    """
    settings, folder = run.settings["dataset"], target_paths(run)["dataset"]
    shards = [f"{shard:02d}" for shard in settings["shards"]]
    archives = [f"{folder}/{shard}.jsonl.zst" for shard in shards]
    texts = [f"{folder}/{shard}.jsonl" for shard in shards]
    documents = [f"{folder}/{settings['name']}_{shard}_text_document" for shard in shards]
    results = [f"{name}.{suffix}" for name in documents for suffix in ("bin", "idx")]
    key = f"pile-{content_key(settings['url'], run.settings['tokenizer']['repository'], *shards)}"
    directory = f"{run.paths.cache}/data-preparation/{key}"
    clear = Phase(name="clear", command=("rm", "-f", "--", *archives, *texts, *results), ranks="first", measured=False)
    stages = [
        _stage(run, directory, stage, outputs)
        for stage, outputs in zip(STAGES, (archives, texts, results), strict=True)
    ]
    job = Job(
        id=key,
        directory=directory,
        phases=(clear, *stages),
        nodes=len(shards),
        tasks_per_node=1,
        gpus_per_node=0,
        environment=Environment(base=run.image),
        files=FrozenMap({f"{directory}/{WRAPPER}": resource_text(__package__, WRAPPER)}),
        time_limit_s=run.options.dataset_time_limit or settings["time_limit_s"],
    )
    comment = f"# {folder} contains {len(results)} complete files"
    complete = " && ".join(f"is_complete {shlex.quote(name)}" for name in documents)
    check = f"{comment}\n{resource_text(__package__, CHECK)}\n{complete}"
    return Task(key=key, kind="the Pile", work=job, check=check, space_gb=settings["space_gb"])


def _stage(run: Run[Any], directory: str, stage: str, outputs: Iterable[str]) -> Phase:
    """Return the phase of one stage, in which each rank processes its own shards (``cluster_type=bcp``).

    The scripts exit with 0 even if they fail, so the phase requires the files that the stage must write.
    """
    settings, names = run.settings["dataset"], target_paths(run)
    shards = settings["shards"]
    arguments = {
        "cluster_type": "bcp",
        "data_config": settings["config"],
        "launcher_scripts_path": f"{run.options.launcher}/launcher_scripts",
        "data_dir": names["dataset"],
        "the_pile_url": settings["url"],
        "file_numbers": f"{shards[0]}-{shards[-1]}",
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
