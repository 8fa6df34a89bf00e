"""Jobs that prepare what a recipe needs besides its image: a converted checkpoint, a packed dataset.

A recipe states each as a table ``[framework.preparations.NAME]``. The command writes the folder ``{result}``. The
folder gets its final name when it is complete, so that no run reads what an interrupted job leaves.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from llmb import Environment, FrozenMap, Job, Phase, Run, Task, content_key, resource_text, with_paths
from llmb_megatron_bridge.run_paths import path_names


def preparation_tasks(run: Run[Any], secrets: tuple[str, ...]) -> tuple[Task, ...]:
    """Return one task for each preparation of the recipe, except a checkpoint that the spec names."""
    tables = run.settings.get("preparations", {})
    wanted = {name: table for name, table in tables.items() if not (name == "checkpoint" and run.options.checkpoint)}
    return tuple(
        _task(run, name, table, secrets, concurrent=place > 0) for place, (name, table) in enumerate(wanted.items())
    )


def _task(run: Run[Any], name: str, table: Mapping[str, Any], secrets: tuple[str, ...], *, concurrent: bool) -> Task:
    """Return the task of one preparation. Its job has one process, with the GPUs of one node."""
    words = path_names(run)
    result, complete = (with_paths(table[each], run.paths, names=words) for each in ("result", "complete"))
    key = f"{name}-{content_key(result, *table['command'])}"
    files = " && ".join(f"[ -s {shlex.quote(f'{result}/{file}')} ]" for file in complete)
    return Task(
        key=key,
        kind=table["kind"],
        work=_job(run, key, {**table, "result": result, "complete": complete}, secrets),
        check=f"# {result} is complete\n{files}",
        space_gb=table["space_gb"],
        concurrent=concurrent,
    )


def _job(run: Run[Any], key: str, table: Mapping[str, Any], secrets: tuple[str, ...]) -> Job:
    result = table["result"]
    directory, partial = f"{run.paths.cache}/preparations/{key}", f"{result}.partial"
    names = {**path_names(run), "result": partial, "files": directory}
    create = Phase(
        name="create",
        command=tuple(with_paths(table["command"], run.paths, names=names)),
        measured=False,
        outputs=tuple(f"{partial}/{file}" for file in table["complete"]),
    )
    return Job(
        id=key,
        directory=directory,
        phases=(
            _phase("clear", "rm", "-rf", "--", partial, result),
            create,
            _phase("move", "mv", "-T", "--", partial, result),
        ),
        nodes=1,
        tasks_per_node=1,
        gpus_per_node=run.gpus_per_node,
        environment=Environment(base=run.image, secrets=secrets),
        env=FrozenMap(with_paths(table["env"], run.paths)),
        files=FrozenMap({f"{directory}/{file}": resource_text(__package__, file) for file in table.get("files", ())}),
        time_limit_s=run.options.preparation_time_limit or table["time_limit_s"],
    )


def _phase(name: str, *command: str) -> Phase:
    return Phase(name=name, command=command, measured=False)
