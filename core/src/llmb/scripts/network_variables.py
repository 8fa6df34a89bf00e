"""Warning about exported variables of networks, such as NCCL_IB_HCA, that a scheduler does not pass to jobs."""

import json
from collections.abc import Mapping

from llmb.values.frozen import FrozenMap
from llmb.values.job import Job
from llmb.values.texts.error_text import hide_passwords

NETWORK_VARIABLES = ("NCCL_", "UCX_", "FI_", "MELLANOX_")
"""The beginnings of variables that configure NCCL, UCX, libfabric and NVIDIA's network cards."""

EXPORTED = "exported."
"""The beginning of facts about variables that are exported on a target's host (`exported_variables_probe`)."""


def exported_variables_probe() -> str:
    """Return bash for the probe of a target that prints the exported variables of its host as facts."""
    patterns = "|".join(f"{name}*" for name in NETWORK_VARIABLES)
    echo = f'echo "{EXPORTED}$each=${{!each}}"'
    return f"for each in $(compgen -e); do case $each in {patterns}) {echo} ;; esac; done\n"


def unpassed_variables_note(
    job: Job, environ: Mapping[str, str], *, facts: Mapping[str, str] = FrozenMap()
) -> tuple[str, ...]:
    """Return one warning about exported variables that the job does not have, with the lines that would pass them.

    ``environ`` is the environment of llmb, and ``facts`` those of the target. Variables that the job sets itself, and
    those with a password, are left out.
    """
    exported = {name: environ[name] for name in environ if name.startswith(NETWORK_VARIABLES)}  # reads few values
    on_host = {key.removeprefix(EXPORTED): value for key, value in facts.items() if key.startswith(EXPORTED)}
    exported |= {name: value for name, value in on_host.items() if name.startswith(NETWORK_VARIABLES)}
    own = {*job.env, *(name for phase in job.phases for name in phase.env), *job.environment.secrets}
    names = sorted(name for name in exported if name not in own)
    shown = [name for name in names if hide_passwords(exported[name]) == exported[name]]
    if not shown:
        return ()
    first = f"warning: jobs do not get exported variables: {', '.join(shown)}; to pass them, add to the target:"
    return ("\n".join([first, "[target.env]", *(f"{name} = {json.dumps(exported[name])}" for name in shown)]),)
