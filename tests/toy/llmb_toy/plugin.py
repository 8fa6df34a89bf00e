"""The toy's hooks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

import attrs

from llmb import (
    Dataset,
    Environment,
    FrameworkHooks,
    FrozenMap,
    Job,
    LineParser,
    LogParser,
    Notice,
    Phase,
    Repository,
    Run,
    Step,
    Task,
    Venv,
    content_key,
    hookimpl,
    resource_text,
)

_STEP = re.compile(rb"toy step (\d+) time ([\d.]+) loss ([\d.]+|nan)")


@attrs.frozen(kw_only=True)
class ToyOptions:
    """Options that define how the training behaves. Everything is off by default.

    ``journal``: a file to which every start and end of a rank is appended. ``gate``: a file for which the training
    waits after ``gate_step`` steps. ``end`` (``exit 3``, ``kill 9``, ``memory``, ``leak``, ``nothing``) is what happens
    after ``end_step`` steps on ``end_rank``; ``nan_step`` prints a loss of NaN, ``garbled_step`` a time at which the
    parser fails. ``dump``: write the environment of each rank.
    ``warm_up``: an unmeasured phase of the first rank comes before. ``output``: what the last phase must leave behind,
    and ``write_output`` is ``full``, ``empty`` or ``none``. ``task``: a shared task is made before; ``task_gate`` is a
    file that it waits for, ``task_end`` bash at its end, ``task_space_gb`` the space that it takes. ``secrets`` and
    ``task_secrets`` are names of variables. ``repository`` is a URL and a commit.
    ``needs_gpus``: the job requests the GPUs of the run, although nothing uses them. ``lock``: the lock file of a
    virtual environment with a ``python`` of these versions.
    """

    journal: str = "/dev/null"
    gate: str = ""
    gate_step: int = 0
    end: str = "nothing"
    end_step: int = -1
    end_rank: int = 0
    nan_step: int = 0
    garbled_step: int = 0
    ignore_term: bool = False
    hang: bool = False
    dump: bool = False
    warm_up: bool = False
    output: bool = False
    write_output: str = "full"
    task: str = ""
    task_on: str = "host"
    task_gate: str = ""
    task_end: str = ""
    task_space_gb: float = 0.0
    task_secrets: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    repository: tuple[str, ...] = ()
    needs_gpus: bool = False
    lock: str = ""
    python: str = ">=3.11"


@attrs.frozen(kw_only=True)
class ToySettings:
    """Settings in recipes. They have no effect."""

    note: str = ""


class Toy(FrameworkHooks[ToyOptions]):
    """Framework that trains nothing."""

    options = ToyOptions
    settings = ToySettings

    @hookimpl
    def prepare_env(self, run: Run[ToyOptions]) -> Environment:
        """Return the image or virtual environment, the repository and the secrets that the spec names."""
        named = run.options.repository
        repositories = (Repository(name="toy", url=named[0], commit=named[1]),) if named else ()
        venv = Venv(lock=run.options.lock, python=run.options.python) if run.options.lock else None
        return Environment(base=venv or run.image, secrets=run.options.secrets, repositories=repositories)

    @hookimpl
    def prepare_dataset(self, run: Run[ToyOptions]) -> Dataset | None:
        """Return a file that is created once for each word in ``task``."""
        if not run.options.task:
            return None
        key = f"toy-{content_key(run.options.task)}"
        data = f"{run.paths.cache}/{key}"
        done = shlex.quote(f"{data}/done")
        work = "\n".join(
            [
                f"mkdir -p {shlex.quote(data)}",
                f"echo task-begin {key} x >>{shlex.quote(run.options.journal)}",
                f"gate={shlex.quote(run.options.task_gate)}",
                "exec {silent}<> <(:)",
                'until [ -z "$gate" ] || [ -e "$gate" ]; do read -r -t 0.02 -u "$silent"; done',
                run.options.task_end,
                f"echo task-end {key} x >>{shlex.quote(run.options.journal)}",
                f"echo data >{done}",
            ]
        )
        if run.options.task_on == "host":
            return Dataset(tasks=(_task(run.options, key, work, done),))
        job = Job(
            id=key,
            directory=f"{run.paths.cache}/jobs/{key}",
            phases=(Phase(name="data", command=("bash", "-c", work), ranks="first"),),
            nodes=1,
            tasks_per_node=1,
            gpus_per_node=0,
            time_limit_s=600,
        )
        return Dataset(tasks=(_task(run.options, key, job, done),))

    @hookimpl
    def build_job(self, run: Run[ToyOptions]) -> Job:
        """Return a job with one or two phases of train.sh."""
        options = run.options
        script = f"{run.paths.run}/train.sh"
        output = f"{run.paths.run}/model.bin"
        env = {
            "JOURNAL": options.journal,
            "GATE": options.gate,
            "GATE_STEP": options.gate_step,
            "END": options.end,
            "END_STEP": run.steps if options.end_step < 0 else options.end_step,
            "END_RANK": options.end_rank,
            "NAN_STEP": options.nan_step,
            "GARBLED_STEP": options.garbled_step,
            "IGNORE_TERM": "yes" if options.ignore_term else "",
            "HANG": "yes" if options.hang else "",
            "DUMP": "yes" if options.dump else "",
            "OUTPUT": output,
            "WRITE_OUTPUT": options.write_output if options.output else "none",
            "STEPS": run.steps,
        }
        train = Phase(
            name="train",
            command=("bash", script, "train"),
            env=FrozenMap({f"TOY_{name}": str(value) for name, value in env.items()}),
            outputs=(output,) if options.output else (),
        )
        quick = FrozenMap({f"TOY_{name}": "" for name in env} | {"TOY_JOURNAL": options.journal, "TOY_STEPS": "3"})
        warm_up = Phase(name="warm-up", command=("bash", script, "warm-up"), env=quick, ranks="first", measured=False)
        return Job(
            id=run.id,
            directory=run.paths.run,
            phases=(warm_up, train) if options.warm_up else (train,),
            nodes=run.nodes,
            tasks_per_node=run.gpus_per_node,
            gpus_per_node=run.gpus_per_node if options.needs_gpus else 0,
            domain_nodes=run.domain_nodes,
            files={script: resource_text("llmb_toy", "train.sh")},
            time_limit_s=run.time_limit_s,
        )

    @hookimpl
    def parse_log(self, run: Run[ToyOptions] | None) -> LogParser:
        """Return a parser of the lines that train.sh prints."""
        return ToyLog()


def _task(options: ToyOptions, key: str, work: Job | str, done: str) -> Task:
    return Task(
        key=key,
        kind="toy data",
        work=work,
        check=f"test -s {done}",
        space_gb=options.task_space_gb,
        secrets=options.task_secrets,
    )


class ToyLog(LineParser):
    """Parser of ``toy step N time S loss L``."""

    needles = (b"toy step ",)
    first_step = 1

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        """Yield the step of a line."""
        if match := _STEP.search(line):
            yield Step(step=int(match[1]), time_s=float(match[2]), loss=float(match[3]))
