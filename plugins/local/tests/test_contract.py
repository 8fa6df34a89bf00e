"""The contract that every scheduler passes, with the scripts of more jobs as golden files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from parts.jobs import job

from llmb import Environment, FrozenMap, Image, Job, Mount, Phase, Sidecar, Venv
from llmb.testing import LocalHost, SchedulerContract

IMAGE = Image(ref="nvcr.io/nvidia/nemo:24.09")


def in_image(**changes: Any) -> Job:
    """Return a job of two phases in an image, the first of them on the machine itself."""
    phases = (
        Phase(name="split", command=("split",), ranks="first", contained=False, measured=False),
        Phase(name="train", command=("bash", "train.sh"), env=FrozenMap({"CUDA_VISIBLE_DEVICES": "0,1,2,3", "A": "1"})),
    )
    mounts = (Mount(source="/a, b", target="/x", read_only=True),)
    usual = {"environment": Environment(base=IMAGE), "phases": phases, "mounts": mounts}
    return job(**{"tasks_per_node": 4, "gpus_per_node": 4, **usual, **changes})


JOBS = {
    "one-phase": job(),
    "three-phases": job(
        tasks_per_node=8,
        environment=Environment(base=Venv(lock="one==1\n", python=">=3.12"), secrets=("HF_TOKEN",)),
        env=FrozenMap({"FLAGS": "--a --b=1", "ODD": 'it\'s $(touch x)\n"two" lines'}),
        phases=(
            Phase(name="prof", command=("nsys", "profile", "train"), measured=False, outputs=("/work/a report",)),
            Phase(name="convert", command=("convert", "it's"), ranks="first", outputs=("/work/pgle",)),
            Phase(name="perf", command=("train", "$(touch x)"), env=FrozenMap({"XLA_FLAGS": "--x=1 --y=2"})),
        ),
    ),
    "sidecar": job(sidecars=(Sidecar(name="telemetry", command=("bash", "/work/it's.sh", "5")),)),
    "docker": in_image(environment=Environment(base=IMAGE, secrets=("HF_TOKEN",))),
    "podman": in_image(environment=Environment(base=attrs.evolve(IMAGE, digest="sha256:" + 64 * "0"))),
    "enroot": in_image(mounts=(Mount(source="/data", target="/d", read_only=True),)),
}
KEYS: dict[str, dict[str, Any]] = {
    "docker": {
        "runtime": "docker",
        "container": {"memory_gb": 8.0, "ipc": "private", "shm_gb": 1.0, "options": ["--device=/dev/x y"]},
    },
    "podman": {"runtime": "podman", "max_parallel": 2, "machine_gpus": 8, "container": {"ulimits": {}}},
    "enroot": {"runtime": "enroot"},
}
"""Keys of [target] for some of these jobs."""


class TestLocal(SchedulerContract):
    scheduler = "local"
    run_on = LocalHost()
    golden_jobs = FrozenMap({name: (golden, KEYS.get(name, {})) for name, golden in JOBS.items()})

    @pytest.fixture(autouse=True)
    def _queue_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep the lock and the jobs of the tests out of the user's home."""
        monkeypatch.setenv("HOME", str(tmp_path))
