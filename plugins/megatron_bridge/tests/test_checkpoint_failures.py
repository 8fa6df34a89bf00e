"""Checkpoints that Megatron cannot load: it prints a message and exits without an exception."""

from __future__ import annotations

from pathlib import Path

import pytest

import llmb

EXITS = {
    "Unable to load rng state from checkpoint /c/iter_0000010/mp_rank_00/a.pt. Specify --no-load-rng or --finetune to "
    "prevent attempting to load the rng state, exiting ...": (
        "a checkpoint lacks a part that the training loads (rng state)"
    ),
    "Unable to load optimizer from checkpoint /c/a.pt. Specify --no-load-optim or --finetune to prevent attempting to "
    "load the optimizer state, exiting ...": "a checkpoint lacks a part that the training loads (optimizer)",
    "WARNING: could not find the metadata file /c/latest_checkpointed_iteration.txt\n"
    ">> '--exit-on-missing-checkpoint' set ... exiting. <<": "the checkpoint to load does not exist",
    "ERROR: Invalid metadata file /c/latest_checkpointed_iteration.txt. Exiting": (
        "a checkpoint is damaged (/c/latest_checkpointed_iteration.txt)"
    ),
    "could not load the checkpoint\n[Errno 13] Permission denied: '/c/a.pt'": (
        "a checkpoint could not be written or read ([Errno 13] Permission denied: '/c/a.pt')"
    ),
}


@pytest.mark.parametrize("text", EXITS, ids=lambda text: text[:30])
def test_a_checkpoint_that_cannot_be_loaded(tmp_path: Path, text: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f" loading release checkpoint from /c\n{text}\n")

    parsed = llmb.parse([log], framework="megatron_bridge")

    assert parsed.failure
    assert parsed.failure.cause == EXITS[text]


def test_a_missing_checkpoint_is_no_failure_without_the_option_to_exit(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(
        "WARNING: could not find the metadata file /c/latest_checkpointed_iteration.txt\n"
        "    will not load any checkpoints and will start from random\n"
        " iteration 1/ 1 | elapsed time per iteration (ms): 10.0 | lm loss: 1.5 | number of nan iterations: 0 |\n"
    )

    assert llmb.parse([log], framework="megatron_bridge").failure is None
