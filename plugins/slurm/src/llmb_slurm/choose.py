"""Where a job's processes run: in a container, in a virtual environment, or as they are."""

from __future__ import annotations

from llmb import Environment, Fault, Image, SpecError, Target, Venv
from llmb_slurm.options import RuntimeName, SlurmOptions


def choose_runtime(environment: Environment, target: Target[SlurmOptions]) -> RuntimeName:
    """What [target] says, else what the environment needs. Raises SpecError where the two do not go together."""
    base, wanted = environment.base, target.options.runtime
    natural: RuntimeName = "pyxis" if isinstance(base, Image) else "venv" if isinstance(base, Venv) else "none"
    if wanted is None or wanted == "none" or natural == "none":
        return "none" if natural == "none" else wanted or natural
    if wanted == natural:
        return wanted
    needs = f"the image {base.ref}" if isinstance(base, Image) else "a virtual environment"
    raise SpecError(
        Fault(
            message=f'is "{wanted}", and the recipe runs in {needs}',
            key="target.runtime",
            expected=f'"{natural}", or "none" where all nodes have what it needs',
        )
    )
