"""The neutral job: all that crosses from a framework to a scheduler.

Every path is absolute on the target, and the same inside a container as outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Literal

import attrs

from llmb.values.choices import one_of
from llmb.values.error_text import invalid_value
from llmb.values.errors import Fault, RecipeError
from llmb.values.frozen import FrozenMap, frozen_fields
from llmb.values.nearest import nearest_name
from llmb.values.tables import checked, number, string

Ranks = Literal["all", "first", "node"]


@attrs.frozen(kw_only=True)
class Image:
    """A container image; ``digest`` (``sha256:...``) where its publisher states one."""

    ref: str
    digest: str | None = None

    @property
    def with_digest(self) -> str:
        """The address for people: a tag such as ``dev`` alone does not tell which image it was."""
        return f"{self.ref}@{self.digest}" if self.digest else self.ref

    @property
    def pinned(self) -> str:
        """The address by the digest where one is known, in place of a tag, which may come to name another image."""
        named, _, stated = self.ref.partition("@")
        if not (digest := self.digest or stated):
            return self.ref
        folder, slash, name = named.rpartition("/")
        return f"{folder}{slash}{name.partition(':')[0]}@{digest}"

    @property
    def registry(self) -> str:
        """The host with which the address begins; empty where it begins with a folder of the usual registry."""
        first, slash, _ = self.ref.partition("/")
        return first if slash and (set(first) & set(".:") or first == "localhost") else ""


@attrs.frozen(kw_only=True)
class Venv:
    """A Python environment: ``lock`` is the text of a requirements file with every version and hash pinned.

    ``space_gb`` is what it takes on a disk, 0 where nobody knows.
    """

    lock: str
    python: str
    space_gb: float = 0.0

    @classmethod
    def shipped(cls, package: str, settings: Mapping[str, Any]) -> Venv:
        """What a recipe's settings name: ``lock``, a file in the package's folder ``environments``, and ``python``.

        Beside them may be ``space_gb``. Raises RecipeError for what is missing or wrong.
        """
        readers = {"lock": string, "python": string, "space_gb": number}
        named = {name: settings[name] for name in readers if name in settings}
        stated = checked(named, "framework", readers, ("lock", "python"))
        shipped = {each.name: each for each in files(package).joinpath("environments").iterdir()}
        if (name := stated["lock"]) not in shipped:
            expected = f"one of {', '.join(sorted(shipped))}"
            nearest = nearest_name(name, shipped)
            raise RecipeError(
                Fault(message=invalid_value(name), key="framework.lock", expected=expected, nearest=nearest)
            )
        return cls(**stated | {"lock": shipped[name].read_text(encoding="utf-8")})


@attrs.frozen(kw_only=True)
class Repository:
    """A git repository at one commit, which the core fetches once into the cache of the target."""

    name: str
    url: str
    commit: str

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Repository | None:
        """The one in a recipe's settings, a table ``repository`` with these keys; null where it needs none.

        Raises RecipeError for what is wrong in that table.
        """
        if "repository" not in settings:
            return None
        keys = ("name", "url", "commit")
        return cls(**checked(settings["repository"], "framework.repository", dict.fromkeys(keys, string), keys))

    def folder(self, cache: str) -> str:
        """Where its files lie, at that commit."""
        return f"{cache}/repositories/{self.name}-{self.commit[:12]}"


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Environment:
    """What a job needs around it. ``secrets`` are names of variables of the user's environment, never values."""

    base: Image | Venv | None = None
    repositories: tuple[Repository, ...] = ()
    secrets: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Mount:
    """A path of the node made visible in the container, both absolute."""

    source: str
    target: str
    read_only: bool = False


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Phase:
    """One command. Phases follow one another with a barrier between them; the first that fails ends the job.

    ``command`` is a list of words, always quoted: what differs by rank is done by a script among the job's files
    that reads the rank's environment. ``env`` is what the phase has beside the job's; the spec's [env] wins over both,
    so a framework refuses there (`forbid_env`) what a phase cannot do without. ``ranks``: every task, the first
    alone, or one on each node. ``outputs`` must be there and not be empty when the phase ends. Figures come from the
    logs of measured phases alone. A phase that is not ``contained`` runs on the node itself, outside the container or
    virtual environment.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    ranks: Ranks = attrs.field(default="all", validator=one_of(Ranks))
    measured: bool = True
    contained: bool = True
    outputs: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The command with the phase's own environment before it, set by ``env``."""
        env = [f"{name}={value}" for name, value in self.env.items()]
        return (*(["env", *env] if env else []), *self.command)


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Job:
    """A description of the work that names no scheduler.

    ``files`` maps a path on the target to the text placed there. ``gpus_per_node`` is 0 where the work needs none.
    Each task finds RANK, LOCAL_RANK, NODE_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, the same
    behind ``LLMB_``, and LLMB_JOB_ID, LLMB_RUN_DIR and LLMB_ATTEMPT in its environment, whatever the scheduler.
    ``domain_nodes`` is how many nodes at a time must be of one NVLink domain, where that matters.
    """

    id: str
    directory: str
    phases: tuple[Phase, ...]
    nodes: int
    tasks_per_node: int
    gpus_per_node: int
    domain_nodes: int | None = None
    environment: Environment = Environment()
    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    mounts: tuple[Mount, ...] = ()
    files: Mapping[str, str] = attrs.field(factory=FrozenMap)
    time_limit_s: int

    def container_mounts(self, cache: str) -> tuple[Mount, ...]:
        """What a container must see: the job's directory and the cache under the paths they have outside, and more."""
        own = [Mount(source=folder, target=folder) for folder in (self.directory, cache)]
        return (*own, *self.mounts)

    def as_dict(self) -> dict[str, Any]:
        """Return the job as ``llmb run --dry-run --json`` prints it."""
        return {
            "image": self.environment.base.ref if isinstance(self.environment.base, Image) else None,
            "nodes": self.nodes,
            "tasks_per_node": self.tasks_per_node,
            "gpus_per_node": self.gpus_per_node,
            "time_limit_s": self.time_limit_s,
            "env": dict(self.env),
            "mounts": [attrs.asdict(mount) for mount in self.mounts],
            "files": dict(self.files),
            "phases": [
                {
                    "name": phase.name,
                    "command": list(phase.command),
                    "env": dict(phase.env),
                    "ranks": phase.ranks,
                    "measured": phase.measured,
                    "outputs": list(phase.outputs),
                }
                for phase in self.phases
            ],
        }


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Task:
    """Something that must be on the target before a job starts.

    The key names the content and is the task's identity everywhere, so runs and other ``llmb`` processes share it.
    ``work`` is a job for the scheduler, or bash for the target's host; ``check`` is bash that exits with 0 when the
    result is there and whole. The check alone is believed, before and after, never a record or an exit status.
    ``space_gb`` is the free space that making it takes below the work directory; it is asked for before. ``secrets``
    are names of variables of the user's environment that making it needs, and nothing else does.
    """

    key: str
    kind: str
    work: Job | str
    check: str
    space_gb: float = 0.0
    secrets: tuple[str, ...] = ()

    def on_one_node(self) -> Task:
        """The same with all ranks of its job on one node, for schedulers that have few."""
        if isinstance(self.work, str):
            return self
        ranks = self.work.nodes * self.work.tasks_per_node
        return attrs.evolve(self, work=attrs.evolve(self.work, nodes=1, tasks_per_node=ranks))


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Dataset:
    """Training data, as tasks in order."""

    tasks: tuple[Task, ...] = ()

    def on_one_node(self) -> Dataset:
        """The same with each task's job on one node."""
        return Dataset(tasks=tuple(task.on_one_node() for task in self.tasks))


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Script:
    """What a scheduler is given: the text, files to place first, and where each phase's logs come to lie.

    ``logs`` maps a phase to the paths of its logs, ``{attempt}`` standing for the number of the attempt; a log of the
    scheduler's own stands before them under another name. Their file names differ: the record's copies lie beside one
    another. ``secrets`` are the names of variables that the scheduler itself needs; the core adds those of the job, and
    before it submits, places all in ``<directory>/.secrets``, which only the owner can read: the text has to read it
    (``read_secrets`` of `job_functions`) and to remove it when the job ends. ``provenance`` is a file of ``key=value``
    lines in which the job says on what it ran; each line of a key that comes again with another value is kept. With a
    ``check`` the script is submitted again as long as that fails and no earlier submission is alive; without one it
    is submitted once ever. For schedulers that have no clock of their own: ``time_limit_s``, and ``grace_s``, how long
    a job that is told to end may take before its processes are killed. ``notes`` are lines for people about what
    the scheduler chose by itself. ``hosts`` are machines beside the target's own on which a scheduler that has no other
    to do so starts the job, too: what `SchedulerHooks.build_job` tells `SchedulerHooks.submit`.
    """

    id: str
    directory: str
    text: str
    files: Mapping[str, str] = attrs.field(factory=FrozenMap)
    logs: Mapping[str, tuple[str, ...]] = attrs.field(factory=FrozenMap)
    provenance: str = ""
    secrets: tuple[str, ...] = ()
    check: str = ""
    time_limit_s: int | None = None
    grace_s: int = 30
    notes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
