"""Checks of bash texts in jobs and scripts."""

import re
import subprocess

_SCHEDULER = r"(?:SLURM|SBATCH|SRUN|PBS|LSB|LSF|FLUX|COBALT|SGE|OMPI|PMIX?|PALS|JSM|MV2)_\w+"
_READS = re.compile(
    rf"\$\{{?[!#]?({_SCHEDULER})|(?:environ(?:\.get\(|\[)|getenv\()\s*['\"]({_SCHEDULER})['\"]", re.ASCII
)
_SETS = r"(?:^|[\s;&(]|export\s+){}="


def scheduler_variables(text: str) -> list[str]:
    """Return the variables of schedulers and launchers that a text reads, without those that the text sets first."""
    found = []
    for match in _READS.finditer(text):
        name = match[1] or match[2]
        if not re.search(_SETS.format(name), text[: match.start()], re.MULTILINE):
            found.append(name)
    return found


def bash_errors(text: str) -> str:
    """Return the first error that bash finds in a script without running it, or nothing."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[0] if done.returncode else ""
