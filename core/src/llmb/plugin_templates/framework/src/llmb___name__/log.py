"""The parser of the framework's step lines."""

import re
from collections.abc import Iterator

from llmb import LineParser, Notice, Step

_STEP = re.compile(rb"step (\d{1,12}): loss (\d{1,9}\.\d{1,9}), took (\d{1,9}\.\d{1,9}) s\b")


class Log(LineParser):
    """``step 3: loss 7.1234, took 0.501 s``: replace this line and the pattern by those of your framework."""

    needles = (b", took ",)  # texts that occur in step lines alone
    first_step = 0

    def read_line(self, line: bytes) -> Iterator[Step | Notice]:
        """Yield the step of a line."""
        if found := _STEP.search(line):
            yield Step(step=int(found[1]), loss=float(found[2]), time_s=float(found[3]))
