"""Bash of this package that calls commands of Slurm."""

from llmb import resource_text


def bash_files(*names: str) -> str:
    """Return the text of bash files of this package."""
    return "\n".join(resource_text("llmb_slurm", name) for name in names)


def queries(*names: str) -> str:
    """Return bash files that query or cancel jobs, after the unsetting of variables that would change the result."""
    return bash_files("unset_slurm_variables.sh", *names)
