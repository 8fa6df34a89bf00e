"""Which runtime a run gets: the one that the user named, else the best that is there."""

from __future__ import annotations

import shutil

from llmb import Environment, Fault, Image, SpecError, Target, TargetError, Venv
from llmb_local.machine import probed
from llmb_local.options import LocalOptions, RuntimeName
from llmb_local.runtimes import Runtime

ENGINES: tuple[RuntimeName, ...] = ("docker", "podman", "enroot")
"""The container engines, the best first."""


def choose_runtime(environment: Environment, target: Target[LocalOptions]) -> RuntimeName:
    """The runtime's name. Before the target was probed nothing is refused that depends on the machine.

    Raises SpecError for one that does not suit the recipe, TargetError where an engine is needed and none works.
    """
    wanted, base = target.options.runtime, environment.base
    if wanted is not None:
        _refuse_unsuitable(wanted, base)
    elif isinstance(base, Image):
        wanted = _best_engine(target)
    else:
        wanted = "venv" if isinstance(base, Venv) else "none"
    if wanted in ENGINES and (refusal := target.facts.get(f"{wanted}.refusal")):
        raise TargetError(refusal)
    return wanted


def runtime(name: RuntimeName) -> Runtime:
    """The runtime of this name."""
    from llmb_local.runtimes.direct import DirectRuntime, InVenv
    from llmb_local.runtimes.docker import Docker
    from llmb_local.runtimes.enroot import Enroot

    if name == "docker" or name == "podman":
        return Docker(name)
    if name == "enroot":
        return Enroot()
    return InVenv() if name == "venv" else DirectRuntime()


def _refuse_unsuitable(wanted: RuntimeName, base: Image | Venv | None) -> None:
    if wanted in ENGINES and not isinstance(base, Image):
        message, expected = f'is "{wanted}", and the recipe has no image', "workload.image beside it, or no such key"
    elif wanted == "venv" and not isinstance(base, Venv):
        has = f"runs in the image {base.ref}" if isinstance(base, Image) else "has no virtual environment"
        message, expected = f'is "venv", and the recipe {has}', f"one of {', '.join(ENGINES)}, or none"
    else:
        return
    raise SpecError(Fault(message=message, key="target.runtime", expected=expected))


def _best_engine(target: Target[LocalOptions]) -> RuntimeName:
    """The first that works; before the probe the first that is installed, since nothing may be started."""
    if not probed(target):
        return next((name for name in ENGINES if shutil.which(name)), ENGINES[0])
    for sign in ("version", "refusal"):
        for name in ENGINES:
            if f"{name}.{sign}" in target.facts:
                return name
    raise TargetError(
        "the run needs a container engine, and none of docker, podman and enroot is installed on this machine; "
        "install one, or set target.runtime to none and prepare what the commands need yourself"
    )
