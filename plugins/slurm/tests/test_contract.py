"""The contract that every scheduler passes, with the scripts of more jobs as golden files.

tests/test_slurm_contract.py runs jobs on a cluster.
"""

from __future__ import annotations

from typing import Any

import pytest
from parts.jobs import job

from llmb import Environment, FrozenMap, Image, Job, Mount, Phase, Sidecar, Venv
from llmb.testing import SchedulerContract

VENV = Environment(base=Venv(lock="one==1\n", python=">=3.12"))
IMAGE = Environment(base=Image(ref="nvcr.io/nvidia/nemo:24.09", digest="sha256:" + 64 * "0"), secrets=("HF_TOKEN",))


PHASES = (
    Phase(name="clocks", command=("nvidia-smi", "-lgc", "1980"), ranks="node", measured=False, contained=False),
    Phase(name="prof", command=("nsys", "profile", "train"), measured=False, outputs=("/work/a report",)),
    Phase(name="convert", command=("convert", "it's"), ranks="first", outputs=("/work/pgle",)),
    Phase(name="perf", command=("train", "$(touch x)"), env=FrozenMap({"XLA_FLAGS": "--x=1 --y=2"})),
)
SIDECAR = Sidecar(name="telemetry", command=("bash", "/work/it's.sh", "5"))
EVERYTHING: dict[str, Any] = {
    "gpu_request": "gpus-per-node",
    "account": "proj",
    "partition": "batch,long",
    "qos": "high",
    "reservation": "bench mark",
    "nodelist": "node[1-8]",
    "exclude": "node9",
    "constraint": "gpu&memory",
    "dependency": "afterok:1:2",
    "nice": 10,
    "mem": "100G",
    "exclusive": False,
    "mpi": "pmix",
    "sbatch": {"licenses": "a:1", "switches": 1, "contiguous": True, "wckey": 'it"s \\ $(touch x)'},
}
JOBS: dict[str, tuple[Job, dict[str, Any]]] = {
    "one-phase": (job(), {}),
    "venv-two-nodes": (
        job(nodes=2, environment=VENV, env=FrozenMap({"ODD": 'it\'s $(touch x)\n"two" lines'})),
        {},
    ),
    "container-four-phases": (
        job(
            nodes=8,
            tasks_per_node=8,
            gpus_per_node=8,
            environment=IMAGE,
            phases=PHASES,
            env=FrozenMap({"FLAGS": "--a --b=1"}),
            mounts=(Mount(source="/data", target="/dataset", read_only=True),),
        ),
        {},
    ),
    "every-option": (job(nodes=2, gpus_per_node=4), EVERYTHING),
    "sidecar": (job(nodes=2, sidecars=(SIDECAR,)), {}),
    "nvlink-domains": (job(nodes=16, tasks_per_node=4, gpus_per_node=4, domain_nodes=16), {}),
}


class TestSlurm(SchedulerContract):
    scheduler = "slurm"
    golden_jobs = FrozenMap(JOBS)

    @pytest.fixture(autouse=True)
    def _no_defaults_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SBATCH_PARTITION", "SLURM_PARTITION"):
            monkeypatch.delenv(name, raising=False)
