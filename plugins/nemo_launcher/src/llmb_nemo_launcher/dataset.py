"""What a run needs before it starts: the tokenizer, and the Pile made by the launcher's three stages."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from llmb import (
    Dataset,
    Environment,
    FrozenMap,
    Job,
    Phase,
    Repository,
    Run,
    Task,
    assignments,
    content_key,
    resource_text,
)
from llmb_nemo_launcher.places import places

STAGES = ("download", "extract", "preprocess")


def dataset_of(run: Run[Any]) -> Dataset | None:
    """The tasks that come before a run; null where its tokenizer is in the image and its data are synthetic."""
    settings = run.settings
    tasks = [_tokenizer(run)] if "tokenizer" in settings else []
    if "dataset" in settings:
        tasks.append(_pile(run))
    return Dataset(tasks=tuple(tasks)) if tasks else None


def _tokenizer(run: Run[Any]) -> Task:
    """The files of a tokenizer, each with content of its own: a pointer of Git LFS is none."""
    tokenizer, folder = run.settings["tokenizer"], places(run)["tokenizer"]
    repository = Repository.of(run.settings)
    script, settings = _copied(run, repository) if repository else _fetched(run)
    lines = [assignments(folder=folder, **settings), f"files=({shlex.join(tokenizer['files'])})"]
    lines += [resource_text(__package__, "whole_tokenizer.sh"), resource_text(__package__, script)]
    said = f"# {folder} has {' and '.join(tokenizer['files'])}"
    whole = " && ".join(f"whole {shlex.quote(f'{folder}/{name}')}" for name in tokenizer["files"])
    return Task(
        key=f"tokenizer-{content_key(tokenizer['repository'], *tokenizer['files'])}",
        kind=f"tokenizer of {tokenizer['repository']}",
        work="\n".join(lines),
        check=f"{said}\n{resource_text(__package__, 'whole_tokenizer.sh')}\n{whole}",
        secrets=("HF_TOKEN",) if tokenizer["kind"] == "gated" else (),
    )


def _fetched(run: Run[Any]) -> tuple[str, Mapping[str, str]]:
    """From Hugging Face, by the target's host: nodes may have no way out."""
    tokenizer = run.settings["tokenizer"]
    gated = "yes" if tokenizer["kind"] == "gated" else ""
    return "fetch_tokenizer.sh", {"repository": tokenizer["repository"], "gated": gated}


def _copied(run: Run[Any], repository: Repository) -> tuple[str, Mapping[str, str]]:
    """From the publisher's own repository, which is fetched before any of the tasks of a data set."""
    folder = run.settings["tokenizer"]["folder"]
    return "copy_tokenizer.sh", {"source": f"{repository.folder(run.paths.cache)}/{folder}"}


def _pile(run: Run[Any]) -> Task:
    """A node for each shard; what an earlier attempt left is removed, since the stages would take it for whole."""
    settings, folder = run.settings["dataset"], places(run)["dataset"]
    shards = [f"{shard:02d}" for shard in settings["shards"]]
    archives = [f"{folder}/{shard}.jsonl.zst" for shard in shards]
    texts = [f"{folder}/{shard}.jsonl" for shard in shards]
    documents = [f"{folder}/{settings['name']}_{shard}_text_document" for shard in shards]
    made = [f"{name}.{suffix}" for name in documents for suffix in ("bin", "idx")]
    key = f"pile-{content_key(settings['url'], run.settings['tokenizer']['repository'], *shards)}"
    directory = f"{run.paths.cache}/data-preparation/{key}"
    clear = Phase(name="clear", command=("rm", "-f", "--", *archives, *texts, *made), ranks="first", measured=False)
    stages = [
        _stage(run, directory, stage, outputs) for stage, outputs in zip(STAGES, (archives, texts, made), strict=True)
    ]
    job = Job(
        id=key,
        directory=directory,
        phases=(clear, *stages),
        nodes=len(shards),
        tasks_per_node=1,
        gpus_per_node=0,
        environment=Environment(base=run.image),
        files=FrozenMap({f"{directory}/nemo.sh": resource_text(__package__, "nemo.sh")}),
        time_limit_s=run.options.dataset_time_limit or settings["time_limit_s"],
    )
    whole = " && ".join(f"whole {shlex.quote(name)}" for name in documents)
    check = (
        f"# {folder} has {len(made)} files that are whole\n{resource_text(__package__, 'whole_dataset.sh')}\n{whole}"
    )
    return Task(key=key, kind="the Pile", work=job, check=check, space_gb=settings["space_gb"])


def _stage(run: Run[Any], directory: str, stage: str, outputs: Iterable[str]) -> Phase:
    """One of the launcher's scripts, each rank with the shards that are its own (``cluster_type=bcp``).

    The scripts end with 0 whatever became of their work, so what a stage must leave is looked for.
    """
    settings, names = run.settings["dataset"], places(run)
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
        "tokenizer_model": None,  # these three as the launcher writes them, which is not Hydra's null
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
        command=("bash", f"{directory}/nemo.sh", sources, names["dataset"], "--", "python3", "-u", script, *words),
        measured=False,
        outputs=tuple(outputs),
    )
