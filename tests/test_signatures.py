"""Failure signatures of core and of all plugins: each text is in one file."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from pathlib import Path

import llmb

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core/src/llmb/logs/signatures"
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


def test_a_controller_that_does_not_respond_is_no_error_of_the_user(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n")
    failure = llmb.parse([log], framework="maxtext").failure
    assert failure
    assert (failure.cause, failure.origin) == ("Slurm's controller did not respond", "infrastructure")
