"""The neutral job, and the script of a scheduler: all that crosses from a framework to a scheduler.

Every path is absolute on the target, and the same inside and outside a container.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs

from llmb.values.environment import Environment, Image
from llmb.values.frozen import FrozenMap
from llmb.values.types.check_types import encode, typed_fields
from llmb.values.types.numbers import NonNegativeFloat, NonNegativeInt, PositiveInt
from llmb.values.types.words_and_addresses import AbsolutePath, Name, NonEmptyStr, VariableName

Ranks = Literal["all", "first", "node"]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Mount:
    """A path of the node that is visible in the container."""

    source: AbsolutePath
    target: AbsolutePath
    read_only: bool = False


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Phase:
    """A command of a job. A phase starts after the previous phase succeeded on all ranks; a failure ends the job.

    ``command`` is a list of words, which schedulers quote. If ranks need different words, the command is a script among
    the job's files that reads the rank's environment. ``env`` is added to the job's environment. [target.env] and [env]
    of the spec override both, so a framework rejects variables there that a phase must set itself (`forbid_env`).
    ``ranks``: the phase runs on all tasks, on the first task, or once on each node. ``outputs`` must exist and must not
    be empty at the end of the phase. Metrics come from the logs of ``measured`` phases alone. A phase that is not
    ``contained`` runs on the node, outside the container or virtual environment.
    """

    name: Name
    command: tuple[str, ...] = attrs.field(validator=attrs.validators.min_len(1))
    env: Mapping[VariableName, str] = attrs.field(factory=FrozenMap)
    ranks: Ranks = "all"
    measured: bool = True
    contained: bool = True
    outputs: tuple[AbsolutePath, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The command with the phase's own environment before it, set by ``env``."""
        env = [f"{name}={value}" for name, value in self.env.items()]
        return (*(["env", *env] if env else []), *self.command)


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Sidecar:
    """A process that runs once on each node beside all phases of a job, outside containers and virtual environments.

    It starts before the first phase. After the last phase, or if a phase fails, it receives SIGUSR1 and has 10 s to
    end; then it is killed. Its failure does not affect the job. Schedulers set none of the variables of ranks for it,
    and give it no secrets, but CUDA_VISIBLE_DEVICES if they set it for ranks. ``name`` is that of its log.
    """

    name: Name
    command: tuple[str, ...] = attrs.field(validator=attrs.validators.min_len(1))


def _have_distinct_names(_job: object, _field: object, phases: tuple[Phase, ...]) -> None:
    """Raise ValueError if there are no phases, or two phases of one name."""
    names = [phase.name for phase in phases]
    if not names:
        raise ValueError("Job.phases: no phase; expected at least one")
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"Job.phases: several phases are named {', '.join(duplicates)}; expected distinct names")


def _have_other_names_than_phases(job: "Job", _field: object, sidecars: tuple[Sidecar, ...]) -> None:
    """Raise ValueError if a sidecar has the name of a phase, because logs have these names."""
    if taken := {phase.name for phase in job.phases} & {each.name for each in sidecars}:
        raise ValueError(f"Job.sidecars: a phase is named {', '.join(sorted(taken))} too; expected distinct names")


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Job:
    """A description of the work that names no scheduler.

    ``files`` maps a path on the target to the text of the file. ``gpus_per_node`` is 0 if the work needs no GPUs. Every
    scheduler sets RANK, LOCAL_RANK, NODE_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each task,
    the same with the prefix ``LLMB_``, and LLMB_JOB_ID, LLMB_RUN_DIR and LLMB_ATTEMPT. If NVLink domains matter,
    ``domain_nodes`` is the number of nodes at a time that must be in one domain. ``mpi`` is the interface by which an
    MPI launcher has to start the ranks (``pmix``), or None if any launcher will do. With ``mpi_optional``, a scheduler
    without an MPI launcher may start the job too. Core adds the ``sidecars`` that the spec needs.
    """

    id: Name
    directory: AbsolutePath
    phases: tuple[Phase, ...] = attrs.field(validator=_have_distinct_names)
    nodes: PositiveInt
    tasks_per_node: PositiveInt
    gpus_per_node: NonNegativeInt
    domain_nodes: PositiveInt | None = None
    mpi: NonEmptyStr | None = None
    mpi_optional: bool = False
    environment: Environment = attrs.field(default=Environment())
    env: Mapping[VariableName, str] = attrs.field(factory=FrozenMap)
    mounts: tuple[Mount, ...] = ()
    files: Mapping[AbsolutePath, str] = attrs.field(factory=FrozenMap)
    sidecars: tuple[Sidecar, ...] = attrs.field(default=(), validator=_have_other_names_than_phases)
    time_limit_s: PositiveInt

    def container_mounts(self, cache: str) -> tuple[Mount, ...]:
        """Return all mounts of a container: the job's directory and the cache, under the same paths, and `mounts`."""
        own = [Mount(source=folder, target=folder) for folder in (self.directory, cache)]
        return (*own, *self.mounts)

    def as_dict(self) -> dict[str, Any]:
        """Return the job as ``llmb run --dry-run --json`` prints it."""
        phases = encode(self.phases)
        return {
            "image": self.environment.base.ref if isinstance(self.environment.base, Image) else None,
            "nodes": self.nodes,
            "tasks_per_node": self.tasks_per_node,
            "gpus_per_node": self.gpus_per_node,
            "time_limit_s": self.time_limit_s,
            "mpi": self.mpi,
            "env": dict(self.env),
            "mounts": encode(self.mounts),
            "files": dict(self.files),
            "phases": [{name: item for name, item in each.items() if name != "contained"} for each in phases],
            "sidecars": encode(self.sidecars),
        }


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Task:
    """A prerequisite on the target, which must be complete before a job starts.

    ``key`` names the content and identifies the task everywhere, so that runs and other ``llmb`` processes share it.
    ``work`` is a job for the scheduler, or bash for the target's host; it is empty if only the user can create the
    result, without which the runs fail. ``check`` is bash that exits with 0 if the result is complete. llmb relies on
    the check alone, before and after the work, never on a record or an exit code. ``space_gb`` is the free space below
    the work directory that the work needs. ``secrets`` are names of the user's environment variables that only the work
    needs. If ``concurrent`` is True, the task may be created at the same time as the previous task of the list;
    otherwise it starts after that task is complete.
    """

    key: Name
    kind: NonEmptyStr
    work: Job | str
    check: str
    space_gb: NonNegativeFloat = 0.0
    secrets: tuple[VariableName, ...] = ()
    concurrent: bool = False

    def on_one_node(self) -> Self:
        """Return the task with all ranks of its job on one node, for schedulers with few nodes."""
        if isinstance(self.work, str):
            return self
        ranks = self.work.nodes * self.work.tasks_per_node
        return attrs.evolve(self, work=attrs.evolve(self.work, nodes=1, tasks_per_node=ranks))


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Dataset:
    """Training data, as tasks in order."""

    tasks: tuple[Task, ...] = ()

    def on_one_node(self) -> Self:
        """Return the dataset with the job of each task on one node."""
        return attrs.evolve(self, tasks=tuple(task.on_one_node() for task in self.tasks))


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Script:
    """The text for a scheduler, the files to place first, and the paths of the logs of each phase.

    ``logs`` maps a phase to its logs, in which ``{attempt}`` is the number of the attempt. A log of the scheduler
    itself comes first, under another name. File names of logs are distinct, because the record keeps copies of all logs
    in one folder. ``secrets`` are names of variables that the scheduler itself needs, to which llmb adds those of the
    job. Before submitting, llmb places all secrets in ``<directory>/.secrets``, readable by the owner alone. The text
    has to read that file (``read_secrets`` of `job_functions`) and to remove it when the job ends. ``provenance_file``
    is a file of ``key=value`` lines in which the job describes where it runs; of each key, all distinct values are
    kept. ``attempts_file`` is the file in which ``record_attempt`` of `job_functions` keeps start and end of each
    attempt. A script with a ``check`` is submitted again if the check fails and no earlier submission is alive; a
    script without one is submitted once. Schedulers without a clock of their own use ``time_limit_s``, and ``grace_s``,
    the time between the request to end and the kill. ``notes`` are for users: what the scheduler decided. ``hosts`` are
    further machines on which the scheduler starts the job, from `SchedulerHooks.build_job` for `SchedulerHooks.submit`.
    ``reserved_files`` are names of files that the scheduler writes into the directory itself, besides those that the
    library functions write, so that no file of the job may have such a name.
    """

    id: Name
    directory: AbsolutePath
    text: str
    files: Mapping[AbsolutePath, str] = attrs.field(factory=FrozenMap)
    logs: Mapping[NonEmptyStr, tuple[AbsolutePath, ...]] = attrs.field(factory=FrozenMap)
    provenance_file: str = ""
    attempts_file: str = ""
    secrets: tuple[VariableName, ...] = ()
    check: str = ""
    time_limit_s: PositiveInt | None = None
    grace_s: NonNegativeInt = 30
    notes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    reserved_files: tuple[NonEmptyStr, ...] = ()
