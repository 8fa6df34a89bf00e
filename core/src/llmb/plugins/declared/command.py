"""The command of a declared framework, as a script that each process of the job runs, and the values that it lacks."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from llmb.plugins.declared.framework_tables import DeclaredFile, Launch
from llmb.plugins.declared.placeholders import DEGREES, OF_PROCESS, names_in, quote, replace, values_of
from llmb.values.errors import Fault
from llmb.values.job import Phase, Ranks
from llmb.values.run import Run

SCRIPT: Final = "command.sh"

PROCESSES: Final[Mapping[Launch, Ranks]] = {"task": "all", "torchrun": "node", "node": "node", "first": "first"}
"""The ranks that run the command."""

ELASTIC: Final = (
    *("torchrun", "--nnodes={nodes}", "--nproc-per-node={gpus_per_node}", "--node-rank={node_rank}"),
    *("--master-addr={master_addr}", "--master-port={master_port}"),
)
"""The launcher of PyTorch, once on each node. It starts a process for each GPU and sets RANK and the like."""

EQUIVALENT: Final = {
    "global_batch_size": {"global_batch_size", "gradient_accumulation"},
    "micro_batch_size": {"micro_batch_size", "gradient_accumulation"},
}
"""The placeholders of which each carries a key of the spec."""


def used_names(file: DeclaredFile) -> set[str]:
    """Return the placeholders in the command and the environment."""
    return {name for text in (*file.command, *file.env.values()) for name in names_in(text)}


def training_phase(file: DeclaredFile, run: Run[Any]) -> Phase:
    """Return the phase that runs the command."""
    values = _values(file, run)
    return Phase(
        name="train",
        command=("bash", f"{run.paths.run}/{SCRIPT}"),
        env={name: replace(text, values) for name, text in file.env.items() if not _differs(text)},
        ranks=PROCESSES[file.launch],
    )


def command_script(file: DeclaredFile, run: Run[Any]) -> str:
    """Return the script of the command. Every value is quoted.

    A variable whose value differs between processes is set here, unless the spec sets it.
    """
    values = _values(file, run)
    words = (*(ELASTIC if file.launch == "torchrun" else ()), *file.command)
    command = " ".join([*(quote(word, values) for word in words), *map(shlex.quote, run.options.args)])
    exports = (
        f'[ -n "${{{name}+set}}" ] || export {name}={quote(text, values)}'
        for name, text in file.env.items()
        if _differs(text)
    )
    folder = shlex.quote(run.paths.run)
    return "\n".join(["#!/usr/bin/env bash", f"cd {folder} || exit 1", *exports, f"exec {command}", ""])


def _values(file: DeclaredFile, run: Run[Any]) -> dict[str, str]:
    folder = file.repository.folder(run.paths.cache) if file.repository else ""
    return values_of(run, folder, used_names(file) | {"nodes", "gpus_per_node"})


def _differs(text: str) -> bool:
    """Check whether a text has a placeholder whose value differs between processes."""
    return bool(names_in(text) & OF_PROCESS.keys())


def find_unused(file: DeclaredFile, run: Run[Any]) -> Iterator[Fault]:
    """Yield an error for each value of a run that is not in the command: the run would differ from its record."""
    used = used_names(file) | {*file.degrees}
    for name in DEGREES:
        degree = getattr(run.parallelism, name)
        if degree not in (None, 1) and name not in used:
            yield _unused(f"parallelism.{name}", name, f"{degree} has no effect", "1, or ")
    for key in run.overrides:
        name = key.rpartition(".")[2]
        if name not in DEGREES and not EQUIVALENT.get(name, {name}) & used:
            yield _unused(key, name, "the value has no effect", "no such key, or ")
    if run.profile:
        message = "a declared framework starts no profiler"
        yield Fault(message=message, key="profile", expected="no table [profile], or a framework plugin in Python")
    if run.image and file.venv:
        yield Fault(message="the framework has a virtual environment", key="workload.image", expected="no such key")


def _unused(key: str, name: str, effect: str, otherwise: str) -> Fault:
    place = "command, env or degrees" if name in DEGREES else "command or env"
    message = f"{effect}: the framework's file does not use {{{name}}}"
    return Fault(message=message, key=key, expected=f"{otherwise}{{{name}}} in {place} of the file")
