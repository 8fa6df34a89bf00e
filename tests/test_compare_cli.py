"""``llmb compare`` on recorded logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts.command_line import command_line


@pytest.mark.parametrize(
    ("recipe", "size"), [("llama2-tiny cpu fp32 1", "1 CPU"), ("llama2-70b h100 bf16 64", "64 GPUs")]
)
def test_the_processors_of_a_point_are_counted_as_what_they_are(
    tmp_path: Path, recipe: str, size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    llmb = command_line(capsys)
    name, gpu_type, dtype, gpus = recipe.split()
    options = ("--recipe", f"maxtext/{name}", "--gpu-type", gpu_type, "--dtype", dtype, "--gpus", gpus, "--save")
    for time_s in (7.5, 8.5):
        log = tmp_path / f"{time_s}.log"
        steps = (f"completed step: {step}, seconds: {time_s}, TFLOP/s/device: 0.1, loss: 9.1\n" for step in range(50))
        log.write_text("".join(steps))
        assert llmb("grade", log, *options).status == 0
    first, second = llmb("runs", "--ids").out.split()
    [line] = [line for line in llmb("compare", first, second).out.splitlines() if "%" in line and "mean" not in line]
    assert line.split("  ")[1] == size
