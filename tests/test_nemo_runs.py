"""Complete NeMo runs without a container: tokenizer, data, training, metrics and verdict.

Stand-ins replace NeMo and its launcher (nemo_standin/README.md), and a server of these tests replaces Hugging Face.
Everything else is real, including Hydra.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import wait_until
from parts.nemo import Hub, NeMoRuns
from parts.slurm import Cluster

STANDINS = Path(__file__).parent / "standins"
WITHOUT_MPI = {"tp": 1}  # this machine has no MPI launcher

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not shutil.which("curl"), reason="curl, which downloads tokenizers, is not installed"),
]


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    with serving(Hub) as address:
        yield address


@pytest.fixture
def runs(tmp_path: Path, hub: str) -> NeMoRuns:
    """Return runs on this machine, which represents a machine with eight GPUs and the content of the image."""
    lock = str(tmp_path / "lock")
    return NeMoRuns(tmp_path, hub, scheduler="local", runtime="none", machine_gpus=8, lock=lock, grace_s=1)


@pytest.fixture
def cluster_runs(tmp_path: Path, hub: str, slurm: Any) -> NeMoRuns:
    """Return runs on a real Slurm cluster with stand-ins for enroot and pyxis. Its nodes contain the programs."""
    runs = NeMoRuns(tmp_path, hub, scheduler="slurm", runtime="pyxis", exclusive=False, mem="2G")
    for name in ("enroot", "srun"):
        shutil.copy(STANDINS / name, runs.folder / "bin" / name)
    return runs


def test_a_complete_run_has_metrics_and_a_verdict(runs: NeMoRuns) -> None:
    runs.claim(step_s=12.91)
    run = runs.run()
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    metrics = run["metrics"]

    assert {path.name for path in runs.data.iterdir()} == {
        f"my-llama_0{shard}_text_document.{suffix}" for shard in (0, 1) for suffix in ("bin", "idx")
    }
    assert (metrics["step_time_s"], metrics["global_batch_size"]) == (pytest.approx(12.9, abs=0.05), 128)
    assert metrics["mfu"] == pytest.approx(0.594, abs=0.005)
    steps = runs.steps(run)
    assert [int(row["step"]) for row in steps] == list(range(1, 51))
    assert float(steps[-1]["consumed_samples"]) == 50 * 128
    assert (run["verdict"], run["reason"][:9]) == ("pass", "ratio 0.9")


@pytest.mark.slow
def test_a_complete_run_on_a_cluster(cluster_runs: NeMoRuns) -> None:
    cluster_runs.claim(step_s=13.0)
    run = cluster_runs.run(gpus=16)
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"

    assert len(list(cluster_runs.data.iterdir())) == 4
    [image] = cluster_runs.workdir.glob("cache/images/*.sqsh")
    data, training = (started(cluster_runs.workdir / folder) for folder in ("cache", "."))
    assert [line[1] for line in training if line[0] == "enroot"] == ["import"]
    contained = [[line for line in lines if f"--container-image={image}" in line] for lines in (data, training)]
    assert list(map(len, contained)) == [8, 1]  # clear, download, extract, preprocess of each shard; the training
    steps = cluster_runs.steps(run)
    assert [int(row["step"]) for row in steps] == list(range(1, 51))
    assert {row["time_s"] for row in steps[1:]} == {"13.0"}
    assert float(steps[-1]["consumed_samples"]) == 50 * 256
    assert run["verdict"] == "pass", run


@pytest.mark.slow
def test_only_the_shard_whose_job_is_killed_runs_again(cluster_runs: NeMoRuns, slurm: Cluster) -> None:
    """Shard 01 is complete while shard 00 still runs: the two jobs have one node each and run in either order."""
    cluster_runs.claim(hang=0)
    earlier, killed = set(pile_jobs(slurm)), list[str]()

    def kill_first_shard() -> None:
        wait_until(lambda: list(cluster_runs.data.glob("*_01_*.idx")) and hanging.exists(), "the other shard")
        [directory] = cluster_runs.workdir.glob("cache/data-preparation/pile-00-*")
        killed.append((directory / "job_id").read_text().strip())
        slurm.order("scancel", *killed)

    hanging = cluster_runs.sources / "hanging"
    killer = threading.Thread(target=kill_first_shard)
    killer.start()
    run = cluster_runs.run(gpus=16)
    killer.join()
    assert run["state"] == "completed", run["failure"]

    def list_shards() -> list[tuple[str, ...]]:
        shards = sorted(shard for _, *shard in map(str.split, set(pile_jobs(slurm)) - earlier))
        return [(name.split("pile-")[1][:2], *words[:2]) for name, *words in shards]

    # Accounting contains the end of a job a moment after the queue.
    ended = ("CANCELLED", "COMPLETED", "FAILED")
    wait_until(lambda: len([state for *_, state in list_shards() if state in ended]) > 2, "three jobs in accounting")
    assert list_shards() == [("00", "1", "CANCELLED"), ("00", "1", "COMPLETED"), ("01", "1", "COMPLETED")]


def pile_jobs(slurm: Cluster) -> list[str]:
    """Return id, name, nodes and state of each job of a shard, also those of other tests on the cluster."""
    jobs = slurm.accounts("JobID,JobName,NNodes,State%9")
    return [line.replace("|", " ") for line in jobs if "pile-" in line]


def started(folder: Path) -> list[list[str]]:
    """Return the calls that the stand-ins for enroot and pyxis recorded in ``folder``."""
    return [line.split() for line in (folder / "standins").read_text().splitlines()]


@pytest.mark.slow
def test_a_run_that_is_slower_than_published_fails(runs: NeMoRuns) -> None:
    runs.claim(step_s=12.5)
    run = runs.run(dtype="fp8")

    assert (run["state"], run["verdict"]) == ("completed", "fail"), run


@pytest.mark.slow
def test_step_times_that_are_means_of_five_are_recorded_as_such(cluster_runs: NeMoRuns) -> None:
    run = cluster_runs.run("grok1-314b", "bf16")
    steps = cluster_runs.steps(run)

    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert [int(row["mean_of"]) for row in steps][:7] == [1, 2, 3, 4, 5, 5, 5]
    assert [float(row["time_s"]) for row in steps[:6]] == [12.5, 7.5, 5.83, 5.0, 4.5, 2.5]
    assert not cluster_runs.data.exists()


def test_a_recipe_that_needs_mpi_is_rejected_before_anything_is_created(runs: NeMoRuns) -> None:
    with pytest.raises(
        AssertionError, match=r"needs an MPI launcher \(pmix\), which the local scheduler does not have"
    ):
        runs.run("grok1-314b", "bf16")
    assert not runs.workdir.exists()


def test_a_token_without_access_fails_the_run_with_the_fix(runs: NeMoRuns) -> None:
    class NoAccess(Hub):
        status = 403

    with serving(NoAccess) as address:
        runs.env["HF_ENDPOINT"] = address
        run = runs.run()
    cause = run["failure"]["cause"]

    assert run["state"] == "failed"
    assert (
        f"HF_TOKEN has no access to meta-llama/Meta-Llama-3-8B (403): request access at {address}/meta-llama" in cause
    )
    assert runs.env["HF_TOKEN"] not in str(run)


@pytest.mark.slow
def test_an_invalid_override_fails_the_run_with_its_cause(runs: NeMoRuns) -> None:
    run = runs.run("grok1-314b", "bf16", parallelism=WITHOUT_MPI, framework={"config": {"model.gc_interval": "[3"}})

    assert run["state"] == "failed"
    assert "OverrideParseException" in str(run["failure"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("download", marks=pytest.mark.slow),
        pytest.param("extract", marks=pytest.mark.slow),
        "preprocess",
    ],
)
def test_a_failed_stage_names_its_log_and_the_next_run_retries_it(runs: NeMoRuns, stage: str) -> None:
    runs.claim(fail=stage)
    failed = runs.run()
    cause = failed["failure"]["cause"]
    assert failed["state"] == "failed"
    assert "shard 00 of the Pile could not be created: " in cause
    assert f"phase {stage}: its output" in cause
    assert "the network is down" in cause
    assert f"/logs/{stage}.0." in cause

    runs.claim()
    assert runs.run()["state"] == "completed"


def test_a_loss_of_nan_is_a_failure(runs: NeMoRuns) -> None:
    runs.claim(nan_step=7)
    run = runs.run("grok1-314b", "bf16", parallelism=WITHOUT_MPI)

    assert (run["state"], run["verdict"]) == ("failed", "undecided")
    assert "NaN" in run["reason"]


@pytest.mark.slow
def test_a_capture_with_nsys_writes_a_report_per_rank_and_has_no_verdict(runs: NeMoRuns) -> None:
    shutil.copy(STANDINS / "nsys", runs.folder / "bin" / "nsys")
    run = runs.run(
        "grok1-314b", "bf16", parallelism=WITHOUT_MPI, profile={"tool": "nsys", "ranks": [0, 3], "gpu_metrics": True}
    )

    assert (run["state"], run["verdict"]) == ("completed", None), run
    assert len(runs.steps(run)) == 50
    reports = (runs.workdir / "runs" / run["run_id"] / "nsys").glob("*.nsys-rep")
    prefix = f"grok1-314b-bf16_8g_{run['run_id']}"
    assert {path.name for path in reports} == {f"{prefix}_0_0.nsys-rep", f"{prefix}_0_3.nsys-rep"}
    started = (runs.workdir / "standins").read_text().splitlines()
    assert {line.split()[1]: "--gpu-metrics-device=all" in line for line in started} == {"0": True, "3": False}


@pytest.mark.slow
def test_a_trace_of_nccl_is_recorded_and_has_no_verdict(runs: NeMoRuns) -> None:
    run = runs.run("grok1-314b", "bf16", parallelism=WITHOUT_MPI, profile={"tool": "nccl-trace"})

    assert (run["state"], run["verdict"]) == ("completed", None)
    assert len(runs.steps(run)) == 10
    assert (runs.workdir / "runs" / run["run_id"] / "nccl-trace").is_dir()
