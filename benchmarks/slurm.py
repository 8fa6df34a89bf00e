"""A sweep of many short jobs on a real Slurm cluster over SSH, and the cost of following a log.

python benchmarks/slurm.py [--jobs 1000]        needs root and .ci/install-parts; takes some minutes

- submission: the time of `llmb run --detach`, divided by the time of a shell loop of `sbatch` with the same scripts on
  the cluster itself, in turns, while the partition starts no job; and the time until the first job is submitted;
- following: queries of the queue per shortest poll interval, peak memory of `llmb`, and the recorded results;
- bytes moved in both directions while a growing log is followed, divided by the new bytes of the log.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from figure import Figure, own_peak_mb, show, usual_environment

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from parts.network import Network  # noqa: E402  # the path is set just above
from parts.slurm import Cluster  # noqa: E402  # the same
from parts.sshd import Sshd  # noqa: E402  # the same

from llmb.cli.app import main as main_of_llmb  # noqa: E402  # the same
from llmb_slurm.plugin import Slurm  # noqa: E402  # the same

TURNS = 3  # of the sweep and the shell loop

# squeue, which also counts its calls
SQUEUE = """#!/bin/sh
echo >>{calls}
exec {squeue} "$@"
"""


class Bench:
    """Cluster with a login node, and an ``llmb`` with a target there."""

    def __init__(self, cluster: Cluster, server: Sshd, login: Path) -> None:
        self.cluster, self.server, self.login = cluster, server, login
        self.memory = cluster.folder / "memory"
        self.turn = 0

    @property
    def home(self) -> Path:
        return self.cluster.folder / f"home{self.turn}"

    @property
    def workdir(self) -> Path:
        return self.cluster.shared / f"work{self.turn}"

    def job_ids(self) -> Iterator[Path]:
        return self.workdir.glob("runs/*/job_id")

    def spec(self, name: str, repeats: int, **framework: Any) -> str:
        options = "".join(f"{key} = {json.dumps(value)}\n" for key, value in framework.items())
        file = self.cluster.folder / f"{name}.toml"
        file.write_text(
            f'[workload]\nrecipe = "toy/tiny"\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 1\nrepeats = {repeats}\n'
            f"[framework]\n{options}"
            f'[target]\nscheduler = "slurm"\nhost = "{self.server.host}"\nworkdir = "{self.workdir}"\n'
            'exclusive = false\nmem = "8000M"\n'
        )
        return str(file)

    @property
    def env(self) -> dict[str, str]:
        path = os.pathsep.join([str(ROOT / "tests/toy"), os.environ.get("PYTHONPATH", "")])
        return usual_environment(**self.server.env, LLMB_HOME=str(self.home), PYTHONPATH=path)

    def llmb(self, *arguments: str) -> float:
        """Run ``llmb`` to its end. Return its time in seconds."""
        command = [sys.executable, __file__, "--memory", str(self.memory), *arguments]
        started = time.perf_counter()
        done = subprocess.run(command, env=self.env, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"llmb {' '.join(arguments)}: {done.stderr}")
        return time.perf_counter() - started

    def partition(self, state: str) -> None:
        self.cluster.order("scontrol", "update", "PartitionName=batch", f"State={state}")


def submission(bench: Bench, jobs: int) -> Iterator[Figure]:
    """Submit in turns, and compare the fastest of each. The last sweep is kept."""
    ours, first, loops = [], [], []
    for turn in range(TURNS):
        bench.partition("DOWN")
        bench.turn = turn
        spec, began = bench.spec("sweep", jobs), time.time()
        ours.append(bench.llmb("run", spec, "--detach", "--json"))
        times = [file.stat().st_mtime for file in bench.job_ids()]
        assert len(times) == jobs
        first.append(min(times) - began)
        loops.append(shell_loop(bench))
        if turn + 1 < TURNS:
            bench.cluster.order("scancel", *(file.read_text().strip() for file in bench.job_ids()))
    bench.partition("UP")
    shown = [", ".join(f"{each:.1f}" for each in times) for times in (ours, loops)]
    what = f"llmb run --detach of {jobs} runs over SSH / a shell loop of sbatch on the cluster"
    yield Figure(what, min(ours) / min(loops), 1.1, detail=f"the fastest of {shown[0]} s; shell loops {shown[1]} s")
    yield Figure(f"time until the first of {jobs} jobs is submitted", min(first), 2.0, "s")


def shell_loop(bench: Bench) -> float:
    """Submit the same scripts in a loop on the cluster, and cancel the jobs. Return the time in seconds."""
    folder = bench.workdir.with_name(f"loop{bench.turn}")
    for script in bench.workdir.glob("runs/*/job.sh"):
        copy = folder / script.parent.name / "job.sh"
        copy.parent.mkdir(parents=True)
        copy.write_text(script.read_text().replace("#SBATCH --job-name=", "#SBATCH --job-name=loop-"))
    loop = f'for folder in {folder}/*/; do cd "$folder" && sbatch --parsable job.sh >>../ids || exit 1; done'
    started = time.perf_counter()
    subprocess.run(["bash", "-c", loop], env={**os.environ, **bench.cluster.env}, check=True)
    seconds = time.perf_counter() - started
    bench.cluster.order("scancel", *(folder / "ids").read_text().split())
    return seconds


def following(bench: Bench, jobs: int) -> Iterator[Figure]:
    """Attach to the sweep, and follow it to its end."""
    calls = count_squeue(bench)
    seconds = bench.llmb("attach", "--json")
    queries, intervals = calls.read_text().count("\n"), seconds / Slurm.poll_interval_s[0]
    results = [json.loads(file.read_text()) for file in bench.home.glob("runs/*/result.json")]
    completed = Counter(each["state"] for each in results)["completed"]
    detail = f"{queries} queries in {seconds:.0f} s"
    yield Figure("queries of Slurm's queue per shortest poll interval", queries / intervals, 1.0, detail=detail)
    yield Figure(f"peak memory of llmb while it follows {jobs} jobs", float(bench.memory.read_text()), 200.0, "MB")
    yield Figure(f"of {jobs} jobs, those without a correct result in the record", jobs - completed, 0)


def count_squeue(bench: Bench) -> Path:
    """Install a squeue on the login node that adds a line to a file per call. Return the file."""
    calls, program = bench.cluster.folder / "calls", bench.login / "bin/squeue"
    program.parent.mkdir()
    program.write_text(SQUEUE.format(calls=calls, squeue=shutil.which("squeue")))
    program.chmod(0o755)
    (bench.login / ".profile").write_text(f"PATH={program.parent}:$PATH\n")
    return calls


def bytes_moved(bench: Bench) -> Figure:
    """Write into the log of a waiting job, like a framework with much output, while ``llmb`` follows it."""
    gate, log_bytes = bench.cluster.folder / "gate", 0
    bench.llmb("run", bench.spec("growing", 1, gate=str(gate), gate_step=1), "--detach", "--json")
    run_id = max(bench.home.glob("runs/*"), key=lambda folder: folder.stat().st_ctime).name
    log = bench.workdir / "runs" / run_id / "logs/train.0.log"
    wait_for(log.exists)
    with Network(bench.server.address, bench.server.port) as network:
        bench.server.write_config(port=network.port)
        follower = subprocess.Popen(
            [sys.executable, "-m", "llmb", "attach", "--json"],
            env=bench.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(100):
            data = os.urandom(75_000).hex().encode() + b"\n"
            with log.open("ab", buffering=0) as file:
                log_bytes += file.write(data)
            time.sleep(0.2)
        gate.touch()
        follower.communicate()
        bench.server.write_config()
        detail = f"{log_bytes:,} new, {network.bytes_down:,} received, {network.bytes_up:,} sent"
        what = "bytes moved over SSH while a growing log is followed / its new bytes"
        return Figure(what, network.bytes / log_bytes, 1.1, detail=detail)


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.1)


def run_and_note_memory(file: str, arguments: list[str]) -> int:
    """Run ``llmb`` in this process, and write its peak memory in MB."""
    sys.argv = ["llmb", *arguments]
    try:
        main_of_llmb()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        Path(file).write_text(str(own_peak_mb()))
    return 0


def figures(jobs: int = 1000) -> Iterator[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="llmb-login-") as login,
        Cluster(nodes=1) as cluster,
        Sshd(env={**cluster.env, "HOME": login}) as server,
    ):
        bench = Bench(cluster, server, Path(login))
        yield from submission(bench, jobs)
        yield from following(bench, jobs)
        yield bytes_moved(bench)


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        sys.exit(run_and_note_memory(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    jobs = parser.parse_args().jobs
    sys.exit(show(figures(jobs)))


if __name__ == "__main__":
    main()
