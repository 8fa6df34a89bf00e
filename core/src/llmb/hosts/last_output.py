"""The last output of processes, from their logs on a host."""

import shlex
from collections.abc import Mapping, Sequence

from llmb.files import resource_text
from llmb.values.host import Host


def read_last_outputs(logs: Mapping[str, Sequence[str]], host: Host) -> Mapping[str, str]:
    """Return the last output of each process, by id, read with one command. Raise TargetError.

    ``logs`` has the paths of the logs of each process. The log that was written last counts.
    """
    calls = (shlex.join(["last_output_of", each, *paths]) for each, paths in logs.items())
    result = host.run("\n".join([resource_text("llmb.hosts", "last_output.sh"), *calls]))
    return dict(line.split("\t", 1) for line in result.stdout.split("\n") if "\t" in line)
