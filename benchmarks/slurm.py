"""A sweep of many short jobs on a real Slurm cluster over SSH, and what following a log costs.

python benchmarks/slurm.py [--jobs 1000]        needs root, and what .ci/install-parts installs; takes some minutes

- submission: from the first run that is about to be submitted to the last that is queued, against a shell loop of
  `sbatch` with the same scripts on the host itself, in turns, while the partition starts nothing;
- then the whole sweep to its end: questions to the queue per tick, peak memory of `llmb`, results recorded;
- bytes moved in both directions while a growing log is followed, against the bytes that were new in it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from figure import Figure, own_peak_mb, show

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from parts.network import Network  # noqa: E402  # the path is set just above
from parts.slurm import Cluster  # noqa: E402  # the same
from parts.sshd import Sshd  # noqa: E402  # the same

TURNS = 3  # of our sweep and the shell loop


class Bench:
    """A cluster with a login node, and an ``llmb`` that knows it."""

    def __init__(self, cluster: Cluster, server: Sshd) -> None:
        self.cluster, self.server = cluster, server
        self.stats = cluster.folder / "stats.json"
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

    def llmb(self, *arguments: str) -> dict[str, Any]:
        """Run ``llmb`` to its end; what it counted meanwhile."""
        path = os.pathsep.join([str(ROOT / "tests/toy"), os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, **self.server.env, "LLMB_HOME": str(self.home), "PYTHONPATH": path}
        command = [sys.executable, __file__, "--counted", str(self.stats), *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"llmb {' '.join(arguments)}: {done.stderr}")
        return dict(json.loads(self.stats.read_text()))

    def partition(self, state: str) -> None:
        self.cluster.order("scontrol", "update", "PartitionName=batch", f"State={state}")

    def events(self) -> list[dict[str, Any]]:
        files = self.home.glob("runs/*/events.jsonl")
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def submission(bench: Bench, jobs: int) -> Figure:
    """In turns, the least of each: a machine that does something else meanwhile hurts both. The last sweep is kept."""
    ours, loops = [], []
    for turn in range(TURNS):
        bench.partition("DOWN")
        bench.turn = turn
        ours.append(sweep(bench, jobs))
        loops.append(shell_loop(bench))
        if turn + 1 < TURNS:
            bench.cluster.order("scancel", *(file.read_text().strip() for file in bench.job_ids()))
    bench.partition("UP")
    told = [" ".join(f"{each:.1f}" for each in times) for times in (ours, loops)]
    detail = f"the least of {told[0]} s; shell loops {told[1]} s"
    what = f"submission of {jobs} jobs over SSH / a shell loop of sbatch there"
    return Figure(what, min(ours) / min(loops), 1.15, detail=detail)


def sweep(bench: Bench, jobs: int) -> float:
    """Seconds from the first run that is about to be submitted to the last that is queued."""
    bench.llmb("run", bench.spec("sweep", jobs), "--detach", "--json")
    times = {state: [each["time"] for each in bench.events() if each.get("state") == state] for state in _BOTH}
    assert len(times["queued"]) == jobs
    return float(max(times["queued"]) - min(times["submitting"]))


_BOTH = ("submitting", "queued")


def shell_loop(bench: Bench) -> float:
    """The same scripts, submitted by a loop on the host; they are cancelled then."""
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


def to_the_end(bench: Bench, jobs: int) -> Iterator[Figure]:
    started = time.perf_counter()
    counted = bench.llmb("attach", "--json")
    seconds = time.perf_counter() - started
    results = [json.loads(file.read_text()) for file in bench.home.glob("runs/*/result.json")]
    states = Counter(each["state"] for each in results)
    ticks = f"{counted['queue']} questions in {counted['ticks']} ticks and {seconds:.0f} s"
    yield Figure("questions to Slurm's queue per tick", counted["queue"] / counted["ticks"], 1.0, detail=ticks)
    yield Figure(f"peak memory of llmb while it follows {jobs} jobs", counted["memory_mb"], 200.0, "MB")
    yield Figure(f"of {jobs} jobs, those without a right result in the record", jobs - states["completed"], 0)


def bytes_moved(bench: Bench) -> Figure:
    """A job waits while this process writes into its log, as a chatty framework would."""
    gate, log_bytes = bench.cluster.folder / "gate", 0
    bench.llmb("run", bench.spec("growing", 1, gate=str(gate), gate_step=1), "--detach", "--json")
    run_id = max(bench.home.glob("runs/*"), key=lambda folder: folder.stat().st_ctime).name
    log = bench.workdir / "runs" / run_id / "logs/train.0.log"
    wait_for(log.exists)
    with Network(bench.server.address, bench.server.port) as network:
        bench.server.write_config(port=network.port)
        path = os.pathsep.join([str(ROOT / "tests/toy"), os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, **bench.server.env, "LLMB_HOME": str(bench.home), "PYTHONPATH": path}
        following = subprocess.Popen(
            [sys.executable, "-m", "llmb", "attach", "--json"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(100):
            data = os.urandom(75_000).hex().encode() + b"\n"
            with log.open("ab", buffering=0) as file:
                log_bytes += file.write(data)
            time.sleep(0.2)
        gate.touch()
        following.communicate()
        bench.server.write_config()
        detail = f"{log_bytes:,} were new, {network.bytes_down:,} came, {network.bytes_up:,} went"
        what = "bytes moved over SSH while a growing log is followed / its new bytes"
        return Figure(what, network.bytes / log_bytes, 1.1, detail=detail)


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.1)


def counted(stats: str, arguments: list[str]) -> int:
    """``llmb`` itself, in this process, with its ticks and its questions counted."""
    from llmb.drive.driver import Driver

    from llmb.cli.app import main
    from llmb.hosts.ssh import SshHost

    counts: Counter[str] = Counter()

    def count(owner: Any, name: str, what: Any) -> None:
        original = getattr(owner, name)

        def counting(self: Any, *more: Any, **named: Any) -> Any:
            counts.update(what(*more))
            return original(self, *more, **named)

        setattr(owner, name, counting)

    count(Driver, "tick", lambda *_: ["ticks"])
    count(SshHost, "run", lambda script, *_: ["commands", *(["queue"] if "\nqueue " in script else [])])
    count(SshHost, "read", lambda *_: ["reads"])
    sys.argv = ["llmb", *arguments]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        Path(stats).write_text(json.dumps({**counts, "memory_mb": own_peak_mb()}))
    return 0


def figures(jobs: int = 1000) -> Iterator[Figure]:
    with Cluster(nodes=1) as cluster, Sshd(env=cluster.env) as server:
        bench = Bench(cluster, server)
        yield submission(bench, jobs)
        yield from to_the_end(bench, jobs)
        yield bytes_moved(bench)


def main() -> None:
    if sys.argv[1:2] == ["--counted"]:
        sys.exit(counted(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    jobs = parser.parse_args().jobs
    sys.exit(show(figures(jobs)))


if __name__ == "__main__":
    main()
