"""Training job: one training phase, or profile, conversion and performance run (PGLE)."""

from collections.abc import Iterable, Mapping
from typing import Any

from llmb import FrozenMap, Phase, Run, key_values
from llmb_maxtext.maxtext_arguments import maxtext_arguments

WRAPPER = "jax_rank_wrapper.sh"


def training_phases(run: Run[Any]) -> tuple[Phase, ...]:
    """Return one training phase, or three if the recipe uses profile-guided latency estimation (PGLE).

    Of the three phases only the last, the performance run, is measured. The profile run is compiled without latency
    hiding, so that its report contains unhidden latencies. The first rank converts the report to a profile for XLA,
    and XLA compiles the performance run with that profile.
    """
    if "profile" not in run.settings:
        return (_train(run, "train", run.steps),)
    folder, settings = run.paths.run, run.settings
    report, converted = f"{folder}/nsys/{run.id}-prof.nsys-rep", f"{folder}/pgle/{run.id}.pbtxt"
    files = ("--profile_path", report, "--pgle_output_path", converted)
    convert = Phase(
        name="convert",
        command=_wrapped(run, (f"{folder}/pgle",), *settings["convert"]["command"], *files),
        ranks="first",
        measured=False,
        outputs=(converted,),
    )
    guided = {"xla_gpu_pgle_profile_file_or_directory_path": converted}
    return (
        _train(run, "prof", settings["profile"]["steps"], settings["profile"], outputs=(report,)),
        convert,
        _train(run, "perf", run.steps, settings["performance"], guided),
    )


def _train(
    run: Run[Any],
    name: str,
    steps: int,
    part: Mapping[str, Any] = FrozenMap(),
    more_flags: Mapping[str, Any] = FrozenMap(),
    outputs: tuple[str, ...] = (),
) -> Phase:
    """Return a training phase; ``part`` is the recipe's table with the environment and XLA flags of this phase."""
    folders: list[str] = []
    nsys = tuple(run.settings.get("nsys", {}).get("command", ()))
    if nsys:
        folders.append(f"{run.paths.run}/nsys")
        nsys += ("-o", f"{folders[-1]}/{run.id}-{name}")
    env = dict(part.get("env", {}))
    flags = {**run.settings.get("xla_flags", {}), **part.get("xla_flags", {}), **more_flags}
    if flags:
        folders.append(f"{run.paths.run}/hlo/{name}")
        env["XLA_FLAGS"] = " ".join(f"--{flag}" for flag in key_values({**flags, "xla_dump_to": folders[-1]}))
    arguments = {**maxtext_arguments(run), "run_name": f"{run.id}-{name}", "steps": steps, **run.options.config}
    return Phase(
        name=name,
        command=_wrapped(run, folders, *nsys, *run.settings["command"], *key_values(arguments)),
        env=FrozenMap(env),
        measured=name != "prof",
        outputs=outputs,
    )


def _wrapped(run: Run[Any], folders: Iterable[str], *command: str) -> tuple[str, ...]:
    """Return the command behind the rank wrapper, which creates ``folders`` first."""
    return ("bash", f"{run.paths.run}/{WRAPPER}", *folders, "--", *command)
