"""The CPU time that sampling costs on a node, without that of nvidia-smi, which a machine without GPUs cannot measure.

python benchmarks/telemetry.py

A program takes the place of nvidia-smi and prints the recorded output of many samples. On a machine with GPUs,
each run measures nvidia-smi too: ``llmb show RUN --json`` has the sum as ``telemetry.cpu_share``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, children_cpu_s, show

from llmb import resource_text

GPUS, INTERVAL_S, SAMPLES = 8, 5.0, 2000
MAX_PERCENT = 0.1
LINE = "2026/11/22 18:00:01.123, {}, 643.21, 1755, 2619, 61, 0x0000000000000004, 71234, 100, 0, 0\n"
STAND_IN = """\
#!/bin/sh
case "$*" in
  nvlink*) exit ;;
  *--loop=*) exec cat "$SAMPLES" ;;
  *) head -n 8 "$SAMPLES" ;;
esac
"""


def figures(samples: int = SAMPLES) -> Iterator[Figure]:
    """Return the share of one core that sampling takes at the interval in the documentation."""
    with tempfile.TemporaryDirectory() as folder:
        script, program, data = Path(folder, "sample_gpus.sh"), Path(folder, "nvidia-smi"), Path(folder, "samples")
        script.write_text(resource_text("llmb.scripts", "sample_gpus.sh"))
        program.write_text(STAND_IN)
        program.chmod(0o755)
        data.write_text("".join(LINE.format(gpu) for gpu in range(GPUS)) * samples)
        environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "SAMPLES": str(data)}
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        before_s = children_cpu_s()
        command = ["bash", str(script), str(int(INTERVAL_S))]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        cpu_s = children_cpu_s() - before_s
    assert done.stdout.count(", gpu, ") == GPUS * samples
    yield Figure(
        f"sampling {GPUS} GPUs every {INTERVAL_S:g} s, without nvidia-smi: share of one core",
        100 * cpu_s / (samples * INTERVAL_S),
        MAX_PERCENT,
        "%",
        detail=f"{1e6 * cpu_s / (samples * GPUS):.0f} us per line",
    )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    raise SystemExit(show(figures()))
