"""The choice of the runtime of a job: the one that the user sets, else the best that works on this machine."""

import shutil

from llmb import Environment, Fault, Image, SpecError, Target, TargetError, Venv
from llmb_local.gpus import is_probed
from llmb_local.options import LocalOptions, RuntimeName
from llmb_local.runtimes import Runtime

ENGINES: tuple[RuntimeName, ...] = ("docker", "podman", "enroot")
"""The container engines, best first."""


def choose_runtime(environment: Environment, target: Target[LocalOptions]) -> RuntimeName:
    """Return the name of the runtime. Before the probe, this makes no check that depends on the machine.

    Raise SpecError if target.runtime does not suit the recipe, and TargetError if no container engine works although
    one is needed.
    """
    wanted, base = target.options.runtime, environment.base
    if wanted is not None:
        _check_suitable(wanted, base)
    elif isinstance(base, Image):
        wanted = _engine_of_file(base.file, target) if base.file else _best_engine(target)
    else:
        wanted = "venv" if isinstance(base, Venv) else "none"
    if wanted in ENGINES and (error := target.facts.get(f"{wanted}.error")):
        raise TargetError(error)
    return wanted


def load_runtime(name: RuntimeName) -> Runtime:
    """Return the runtime of this name."""
    from llmb_local.runtimes.docker import Docker
    from llmb_local.runtimes.enroot import Enroot
    from llmb_local.runtimes.venv import VenvRuntime

    if name == "docker" or name == "podman":
        return Docker(name)
    if name == "enroot":
        return Enroot()
    return VenvRuntime() if name == "venv" else Runtime()


def _check_suitable(wanted: RuntimeName, base: Image | Venv | None) -> None:
    if wanted in ENGINES and not isinstance(base, Image):
        has, expected = "has no image", "workload.image, or no target.runtime"
    elif wanted == "venv" and not isinstance(base, Venv):
        has = f"runs in the image {base.ref}" if isinstance(base, Image) else "has no virtual environment"
        expected = f"one of {', '.join(ENGINES)}, or none"
    elif wanted in ("docker", "podman") and isinstance(base, Image) and base.file:
        has, expected = f"runs in the image file {base.file}", "enroot, or an image in a registry"
    else:
        return
    message = f'"{wanted}" does not suit the recipe, which {has}'
    raise SpecError(Fault(message=message, key="target.runtime", expected=expected))


def _engine_of_file(file: str, target: Target[LocalOptions]) -> RuntimeName:
    if is_probed(target) and not shutil.which("enroot"):
        raise TargetError(f"the image file {file} needs enroot, which is not installed on this machine; install it")
    return "enroot"


def _best_engine(target: Target[LocalOptions]) -> RuntimeName:
    """Return the first engine that works, or, before the probe, the first that is installed."""
    if not is_probed(target):
        return next((name for name in ENGINES if shutil.which(name)), ENGINES[0])
    for sign in ("version", "error"):
        for name in ENGINES:
            if f"{name}.{sign}" in target.facts:
                return name
    raise TargetError(
        "the run needs a container engine, but docker, podman and enroot are not installed on this machine; "
        "install one, or use `llmb run SPEC --set target.runtime=none` with an environment of your own"
    )
