"""Planning of a sweep of 10,000 different runs: `llmb validate`, and time and size of `llmb run --dry-run --json`.

python benchmarks/planning.py [--runs 10000]        takes a minute or two
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from figure import Figure, children_cpu_s, show, usual_environment

RECIPES = ("megatron_bridge/llama3.1-8b", "nemo_launcher/llama3.1-8b")
"""Recipes of two frameworks whose publishers have a rule for any number of nodes."""

GPUS_PER_NODE = 8


def figures(runs: int = 10_000) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        spec = write_spec(Path(folder), runs)
        validate, cpu_s, _ = run_llmb(folder, "validate", spec)
        what = f"llmb validate of {runs:,} different runs"
        yield Figure(what, validate, 2.0, "s", detail=f"{cpu_s:.1f} s of CPU time")
        dry_run, cpu_s, written = run_llmb(folder, "run", spec, "--dry-run", "--json")
        what = f"llmb run --dry-run --json of {runs:,} different runs"
        yield Figure(f"{what}: time", dry_run, 10.0, "s", detail=f"{cpu_s:.1f} s of CPU time")
        yield Figure(f"{what}: size of the document", written / 1e6, 150.0, "MB")


def write_spec(folder: Path, runs: int) -> str:
    """Write a spec of two models, each on many numbers of GPUs. Return its path."""
    gpus = [GPUS_PER_NODE * nodes for nodes in range(1, runs // len(RECIPES) + 1)]
    file = folder / "sweep.toml"
    file.write_text(
        f'[workload]\nrecipe = {list(RECIPES)}\ngpu_type = "h100"\ndtype = "bf16"\ngpus = {gpus}\n'
        '[target]\nscheduler = "slurm"\nhost = "cluster"\nworkdir = "/scratch"\n'
    )
    return str(file)


def run_llmb(home: str, *arguments: str) -> tuple[float, float, int]:
    """Run ``llmb``. Return its time and its CPU time in seconds, and the bytes that it wrote on standard output."""
    env, output = usual_environment(LLMB_HOME=home), Path(home, "output")
    started, cpu_before_s = time.perf_counter(), children_cpu_s()
    with output.open("wb") as stdout:
        subprocess.run([sys.executable, "-m", "llmb", *arguments], check=True, env=env, stdout=stdout)
    return time.perf_counter() - started, children_cpu_s() - cpu_before_s, output.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    sys.exit(show(figures(parser.parse_args().runs)))


if __name__ == "__main__":
    main()
