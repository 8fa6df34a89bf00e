"""Values that a log prints under the name of a field of each step."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import llmb


def test_a_printed_value_does_not_replace_a_field_of_its_name(tmp_path: Path) -> None:
    """Some forks of Megatron print the loss of the model and a total loss, or a number of attempts."""
    log = tmp_path / "a.log"
    fields = "elapsed time per iteration (ms): 10.0 | loss: 3.5E+00 | lm loss: 2.5E+00 | attempt: 7 | z: 4.0 |"
    log.write_text(f" iteration  3/ 50 | consumed samples:  8 | {fields}\n")
    parsed = llmb.parse(log, framework="megatron_bridge")
    [step] = parsed.as_dict()["steps"]
    assert (step["time_s"], step["loss"], step["z"]) == (0.01, 2.5, 4.0)
    header, row = csv.reader(io.StringIO(llmb.steps_csv(parsed.steps)))
    assert len(header) == len({*header})
    assert (row[header.index("loss")], row[header.index("attempt")]) == ("2.5", "0")
