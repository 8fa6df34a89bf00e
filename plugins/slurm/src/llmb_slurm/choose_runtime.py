"""The choice of the runtime of a job: a container, a virtual environment, or the bare nodes."""

from llmb import Environment, Fault, Image, SpecError, Target, Venv
from llmb_slurm.options import RuntimeName, SlurmOptions


def choose_runtime(environment: Environment, target: Target[SlurmOptions]) -> RuntimeName:
    """Return the runtime that target.runtime names, else the one that the environment needs.

    Raise SpecError if target.runtime does not suit the environment.
    """
    base, wanted = environment.base, target.options.runtime
    natural: RuntimeName = "pyxis" if isinstance(base, Image) else "venv" if isinstance(base, Venv) else "none"
    if natural == "none" or wanted in (None, natural):
        return natural
    if wanted == "none":
        return "none"
    needs = f"the image {base.ref}" if isinstance(base, Image) else "a virtual environment"
    raise SpecError(
        Fault(
            message=f'"{wanted}" does not suit the recipe, which runs in {needs}',
            key="target.runtime",
            expected=f'"{natural}", or "none" if all nodes have what the recipe needs',
        )
    )
