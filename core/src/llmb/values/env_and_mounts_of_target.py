"""Settings of a target for every job on it: environment variables, mounts and secrets."""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from llmb.values.copy_with_changes import with_changes
from llmb.values.environment import Environment
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap
from llmb.values.job import Job, Mount, Phase
from llmb.values.run import Run, Target


def with_target_settings(run: Run[Any], target: Target[Any]) -> Run[Any]:
    """Return the run with the variables and mounts of its target below its own, as frameworks see the run."""
    if not target.env and not target.mounts:
        return run
    own = {mount.source for mount in run.mounts}
    mounts = _override([mount for mount in target.mounts if mount.source not in own], run.mounts)
    return with_changes(run, env=FrozenMap({**target.env, **run.env}), mounts=mounts)


def with_target_secrets(environment: Environment, target: Target[Any]) -> Environment:
    """Return the environment with the secrets that every job on the target gets."""
    if not target.secrets:
        return environment
    secrets = tuple(dict.fromkeys((*environment.secrets, *target.secrets)))
    return attrs.evolve(environment, secrets=secrets)


def with_settings(job: Job, env: Mapping[str, str], mounts: tuple[Mount, ...]) -> Job:
    """Return the job with these variables in all phases, and with these mounts. They replace those of the job."""
    if not env and not mounts:
        return job
    return with_changes(
        job,
        env=FrozenMap({**job.env, **env}),
        phases=tuple(_without(phase, env) for phase in job.phases),
        mounts=_override(job.mounts, mounts),
    )


def with_target_differences(run: Run[Any], target: Target[Any], job: Job) -> Run[Any]:
    """Return the run with the settings of its target that replace those of the recipe among its differences.

    ``job`` is the framework's own job, with the settings of the recipe.
    """
    found = tuple(_replaced_keys(run, target, job))
    return with_changes(run, differences=(*run.differences, *found)) if found else run


def _replaced_keys(run: Run[Any], target: Target[Any], job: Job) -> Iterator[str]:
    """Yield the keys of [target.env] and [target.mounts] that replace settings of the recipe, unless the run does."""
    for name, value in target.env.items():
        published = {env[name] for env in (job.env, *(phase.env for phase in job.phases)) if name in env}
        if published - {value} and name not in run.env:
            yield f"target.env.{name}"
    inside = {posixpath.normpath(mount.target): mount for mount in job.mounts}
    for mount in target.mounts:
        if inside.get(posixpath.normpath(mount.target), mount) != mount and mount not in run.mounts:
            yield f'target.mounts."{mount.source}"'


def locate_in_target(error: Fault, run: Run[Any], target: Target[Any]) -> Fault:
    """Return the error of a hook with the key of [target] if the variable or the mount comes from there."""
    own = {f"env.{name}" for name in run.env} | {f'mounts."{mount.source}"' for mount in run.mounts}
    targets = {f"env.{name}" for name in target.env} | {f'mounts."{mount.source}"' for mount in target.mounts}
    return attrs.evolve(error, key=f"target.{error.key}") if error.key in targets - own else error


def _override(below: tuple[Mount, ...] | list[Mount], above: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """Return both mounts, but of two mounts at one path inside only the one ``above``."""
    inside = {posixpath.normpath(mount.target) for mount in above}
    return (*(mount for mount in below if posixpath.normpath(mount.target) not in inside), *above)


def _without(phase: Phase, names: Mapping[str, str]) -> Phase:
    """Return the phase without these variables, so that the job's variables apply in it."""
    if not any(name in names for name in phase.env):
        return phase
    return attrs.evolve(phase, env=FrozenMap((name, value) for name, value in phase.env.items() if name not in names))
