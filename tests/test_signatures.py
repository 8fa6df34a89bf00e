"""Failure signatures of core and of all plugins: each text is in one file."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import llmb

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core/src/llmb/logs/failures/signatures"
FILES = (*CORE.glob("*.toml"), *ROOT.glob("plugins/*/src/*/*signatures.toml"))


def test_a_text_is_in_one_file_unless_a_framework_has_a_better_remedy_than_core() -> None:
    places: dict[str, list[Path]] = defaultdict(list)
    for file in FILES:
        for entry in tomllib.loads(file.read_text())["signatures"]:
            for needle in entry.get("needles", [entry.get("needle")]):
                places[needle].append(file)
    repeated = {needle: files for needle, files in places.items() if len(files) > 1}
    index_cache = [
        CORE / "datasets_and_models.toml",
        ROOT / "plugins/nemo_launcher/src/llmb_nemo_launcher/signatures.toml",
    ]
    assert repeated == {"_doc_idx.npy'": index_cache, "-document_index.npy'": index_cache}


def test_the_remedy_of_a_framework_replaces_that_of_core(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("FileNotFoundError: [Errno 2] No such file or directory: '/d/x-document_index.npy'\n")
    remedies = {}
    for framework in ("megatron_bridge", "nemo_launcher"):
        failure = llmb.parse([log], framework=framework).failure
        assert failure
        assert failure.cause == "the dataset's index cache is missing on a node"
        remedies[framework] = failure.remedy
    assert "findmnt" in remedies["megatron_bridge"]
    assert "framework.index_mapping_dir" in remedies["nemo_launcher"]


def test_no_remedy_for_a_gpu_of_amd_names_a_tool_of_nvidia() -> None:
    remedies = [entry["remedy"] for entry in tomllib.loads((CORE / "amd.toml").read_text())["signatures"]]
    assert any("amdgpu" in each for each in remedies)
    assert not [each for each in remedies if re.search("nvidia|dcgmi|xid|CUDA", each)]


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: No HIP GPUs are available",
        "Memory access fault by GPU node-4 (Agent handle: 0x5) on address 0x7",
        "RuntimeError: HIP error: device-side assert triggered",
    ],
)
def test_the_remedy_for_a_gpu_of_amd_is_in_its_file(tmp_path: Path, line: str) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"{line}\n")
    failure = llmb.parse(log, framework="megatron_bridge").failure
    assert failure
    assert failure.remedy in [entry["remedy"] for entry in tomllib.loads((CORE / "amd.toml").read_text())["signatures"]]


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        (10, "the exchange of tokens between experts timed out (DeepEP)"),
        (50, "the program accessed GPU memory that is not its own"),
    ],
)
def test_a_secondary_cause_explains_another_only_if_it_is_earlier(tmp_path: Path, second: int, cause: str) -> None:
    lines = {
        6: f"2026-11-20 10:10:{second} [rank6]: RuntimeError: DeepEP error: timeout (dispatch CPU)\n",
        9: "2026-11-20 10:10:30 [rank9]: RuntimeError: CUDA error: an illegal memory access was encountered\n",
    }
    logs = [tmp_path / f"rank{rank}.log" for rank in lines]
    for log, line in zip(logs, lines.values(), strict=True):
        log.write_text(line)
    failure = llmb.parse(logs, framework="megatron_bridge").failure
    assert failure
    assert failure.cause == cause


CONTROLLER = "Slurm's controller did not respond"


@pytest.mark.parametrize(
    "command",
    [
        "sbatch: error: Batch job submission failed",
        "salloc: error: Job submit/allocate failed",
        "srun: error: Unable to allocate resources",
        "srun: error: Unable to confirm allocation for job 4711",
        "srun: error: Unable to create step for job 4711",
    ],
)
@pytest.mark.parametrize(
    "reason",
    [
        "Unable to contact slurm controller (connect failure)",
        "Socket timed out on send/recv operation",
        "Zero Bytes were transmitted or received",
        "Unexpected message received",
        "Slurm backup controller in standby mode",
    ],
)
def test_a_controller_that_does_not_respond_is_no_error_of_the_user(tmp_path: Path, command: str, reason: str) -> None:
    assert failure_of(tmp_path, f"{command}: {reason}") == (CONTROLLER, "infrastructure")


@pytest.mark.parametrize(
    "line",
    [
        "sbatch: error: Slurm controller not responding, sleeping and retrying.",
        "sbatch: error: Unable to contact slurm controller (connect failure)",
        "sbatch: fatal: Could not establish a configuration source",
    ],
)
def test_other_messages_about_the_controller_are_no_error_of_the_user_either(tmp_path: Path, line: str) -> None:
    assert failure_of(tmp_path, line) == (CONTROLLER, "infrastructure")


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("sbatch: error: Batch job submission failed: Invalid qos specification", "Slurm rejected the job"),
        ("salloc: error: Job submit/allocate failed: Invalid account", "Slurm rejected the job"),
        ("srun: error: Unable to allocate resources: Invalid partition name", "Slurm granted no resources"),
    ],
)
def test_a_job_that_the_controller_rejects_is_an_error_of_the_user(tmp_path: Path, line: str, cause: str) -> None:
    assert failure_of(tmp_path, line) == (cause, "user")


def test_a_node_that_does_not_respond_is_not_the_controller(tmp_path: Path) -> None:
    line = "srun: error: slurm_receive_msgs: [[node07]:6818] failed: Socket timed out on send/recv operation"
    assert failure_of(tmp_path, line) is None


def failure_of(folder: Path, line: str) -> tuple[str, str | None] | None:
    log = folder / "a.log"
    log.write_text(f"{line}\n")
    failure = llmb.parse([log], framework="maxtext").failure
    return (failure.cause, failure.origin) if failure else None
