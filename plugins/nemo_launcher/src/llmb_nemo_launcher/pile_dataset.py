"""Tasks that create the shards of the Pile with the three stages of NeMo Launcher, and their checks."""

import functools
import shlex
from collections.abc import Mapping
from typing import Any

import attrs

from llmb import Environment, FrozenMap, Image, Job, Phase, Run, Task, content_key, resource_text
from llmb_nemo_launcher.recipe_placeholders import target_paths
from llmb_nemo_launcher.training_job import WRAPPER

CHECK = "pile_check.sh"


@attrs.frozen
class _Pile:
    """The values that determine the tasks. Most runs of a sweep have the same values."""

    settings: Mapping[str, Any]
    tokenizer_repository: str
    tokenizer: str
    folder: str
    cache: str
    image: Image | None
    launcher: str
    time_limit_s: int


def pile_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return one task per shard of the Pile. Each is a job on one node, and they may run at the same time."""
    settings, names = run.settings["dataset"], target_paths(run)
    pile = _Pile(
        settings=settings,
        tokenizer_repository=run.settings["tokenizer"]["repository"],
        tokenizer=names["tokenizer"],
        folder=names["dataset"],
        cache=run.paths.cache,
        image=run.image,
        launcher=run.options.launcher,
        time_limit_s=run.options.dataset_time_limit or settings["time_limit_s"],
    )
    return _shard_tasks(pile)


@functools.lru_cache(maxsize=16)
def _shard_tasks(pile: _Pile) -> tuple[Task, ...]:
    shards = pile.settings["shards"]
    return tuple(_shard_task(pile, shard, concurrent=shard != shards[0]) for shard in shards)


def _shard_task(pile: _Pile, shard: int, *, concurrent: bool) -> Task:
    """Return the task that creates one shard, and the check of the created files.

    The job first removes the files of an earlier attempt, because the stages would treat them as complete.
    """
    settings, folder = pile.settings, pile.folder
    number = f"{shard:02d}"
    archive, text = f"{folder}/{number}.jsonl.zst", f"{folder}/{number}.jsonl"
    document = f"{folder}/{settings['name']}_{number}_text_document"
    results = (f"{document}.bin", f"{document}.idx")
    key = f"pile-{number}-{content_key(settings['url'], pile.tokenizer_repository, number)}"
    directory = f"{pile.cache}/data-preparation/{key}"
    clear = Phase(name="clear", command=("rm", "-f", "--", archive, text, *results), ranks="first", measured=False)
    outputs = {"download": (archive,), "extract": (text,), "preprocess": results}
    stages = [_stage(pile, shard, directory, stage, files) for stage, files in outputs.items()]
    job = Job(
        id=key,
        directory=directory,
        phases=(clear, *stages),
        nodes=1,
        tasks_per_node=1,
        gpus_per_node=0,
        environment=Environment(base=pile.image),
        files=FrozenMap({f"{directory}/{WRAPPER}": resource_text(__package__, WRAPPER)}),
        time_limit_s=pile.time_limit_s,
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


def _stage(pile: _Pile, shard: int, directory: str, stage: str, outputs: tuple[str, ...]) -> Phase:
    """Return the phase of one stage, which processes one shard (``cluster_type=bcp``).

    The scripts exit with 0 even if they fail, so the phase requires the files that the stage must write.
    """
    sources = f"{pile.launcher}/launcher_scripts"
    arguments = {
        "cluster_type": "bcp",
        "data_config": pile.settings["config"],
        "launcher_scripts_path": sources,
        "data_dir": pile.folder,
        "the_pile_url": pile.settings["url"],
        "file_numbers": f"{shard}-{shard}",
        "rm_downloaded": True,
        "rm_extracted": True,
        "tokenizer_type": pile.tokenizer,
        "tokenizer_library": "huggingface",
        "tokenizer_model": None,  # the launcher writes None here, not Hydra's null
        "vocab_save_dir": None,
        "merges_save_dir": None,
        "hydra.run.dir": f"{directory}/{stage}",
        "hydra.output_subdir": "null",
    }
    script = f"{sources}/nemo_launcher/collections/dataprep_scripts/pile_dataprep/{stage}.py"
    words = (f"{name}={value}" for name, value in arguments.items())
    return Phase(
        name=stage,
        command=("bash", f"{directory}/{WRAPPER}", sources, pile.folder, "--", "python3", "-u", script, *words),
        measured=False,
        outputs=outputs,
    )
