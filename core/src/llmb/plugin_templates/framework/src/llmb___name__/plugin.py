"""Framework plugin for __Name__."""

from importlib.resources import files

from llmb import (
    Environment,
    Fault,
    FrameworkHooks,
    Job,
    LogParser,
    Phase,
    Run,
    SpecError,
    hookimpl,
    unsupported_degrees,
)

from llmb___name__.log import Log
from llmb___name__.options import Options


class __Name__(FrameworkHooks[Options]):
    """Training with __Name__, one process per GPU."""

    options = Options

    @hookimpl
    def prepare_env(self, run: Run[Options]) -> Environment:
        """Return the run's image, if it has one."""
        return Environment(base=run.image)

    @hookimpl
    def build_job(self, run: Run[Options]) -> Job:
        """Return the job with one training phase. Raise SpecError for a run that the framework does not support."""
        degrees, model = run.parallelism, run.model
        errors = [*unsupported_degrees(run, ("pp", "vp", "cp", "ep", "etp"))]
        if run.profile:
            message = "__name__ starts no profiler"
            errors.append(Fault(message=message, key="profile", expected="no table [profile]"))
        if errors:
            raise SpecError(*errors)
        script = f"{run.paths.run}/train.py"
        command = (
            *("python3", script, f"--steps={run.steps}", f"--dtype={run.dtype}"),
            *(f"--tp={degrees.tp}", f"--fsdp={degrees.fsdp}"),
            *(f"--micro-batch={degrees.micro_batch_size}", f"--global-batch={degrees.global_batch_size}"),
            *(f"--layers={model.layers}", f"--hidden={model.hidden}", f"--ffn={model.ffn}", f"--heads={model.heads}"),
            *(f"--query-groups={model.query_groups}", f"--vocab={model.vocab}", f"--seq-len={model.seq_len}"),
            *run.options.args,
        )
        program = files("llmb___name__") / "train.py"  # core copies it to the target
        return run.job((Phase(name="train", command=command),), files={script: program.read_text(encoding="utf-8")})

    @hookimpl
    def parse_log(self, run: Run[Options] | None) -> LogParser:
        """Return a new parser for one log."""
        return Log()
