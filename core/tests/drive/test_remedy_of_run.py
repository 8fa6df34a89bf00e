"""Remedies of a run: its names in the commands, and nothing that a shell interprets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb.drive.finalize.remedy_of_run import fill_remedy
from llmb.logs.failures.signature_files import known_signatures
from llmb.plan_runs import RunPlan
from llmb.plugins.installed_names import framework_names
from llmb.plugins.registry import PluginRegistry
from llmb.records.record import RunRecord
from llmb.testing import plan_tables
from llmb.values.causes import CAUSES
from llmb.values.failure import Failure

RECORD = RunRecord(Path("/home/me/it's/runs/abcde"))
RUN_TOML = "'/home/me/it'\"'\"'s/runs/abcde/run.toml'"


@pytest.fixture(scope="module")
def plan() -> RunPlan:
    workload = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
    return plan_tables({"workload": {**workload, "image": "nvcr.io/nvidia/jax:24"}})


def remedy(plan: RunPlan, text: str, **more: Any) -> str:
    return fill_remedy(Failure(cause="c", remedy=text, **more), plan, RECORD).remedy


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("run `llmb run SPEC --set a=1`", f"run `llmb run {RUN_TOML} --set a=1`"),
        ("`llmb recipes ADDRESS` prints it", "`llmb recipes maxtext/llama2-70b` prints it"),
        ("`docker pull IMAGE`, `docker login REGISTRY`", "`docker pull nvcr.io/nvidia/jax:24`, `docker login nvcr.io`"),
        ("`enroot import docker://REGISTRY#NAME`", "`enroot import docker://REGISTRY#NAME`"),
        ("`srun --container-image=IMAGE PROGRAM`", "`srun --container-image=IMAGE PROGRAM`"),
        ("set PATH, NODE and SPEC", "set PATH, NODE and SPEC"),
    ],
)
def test_the_names_of_the_run_are_filled_in(plan: RunPlan, text: str, filled: str) -> None:
    assert remedy(plan, text) == filled


@pytest.mark.parametrize("needle", ["No space left on device", "Disk quota exceeded"])
@pytest.mark.parametrize("evidence", ["", "mktemp: failed to create file via template '/work/.check.XXXXXX': "])
def test_the_remedy_of_a_full_disk_lists_the_sizes_in_the_work_directory(
    plan: RunPlan, needle: str, evidence: str
) -> None:
    text = next(each.remedy for each in known_signatures() if each.needle == needle)
    assert f"`du -xh -d 1 {plan.target.workdir} | sort -h`" in remedy(plan, text, evidence=evidence + needle)


def plan_with(micro_batch_size: int) -> RunPlan:
    workload = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
    return plan_tables({"workload": workload, "parallelism": {"micro_batch_size": micro_batch_size}})


def test_a_run_with_a_micro_batch_of_1_gets_another_remedy_for_a_lack_of_memory() -> None:
    smaller = "use a smaller micro batch (`llmb run SPEC --set parallelism.micro_batch_size=1`), or more GPUs"
    assert "--set parallelism.micro_batch_size=1`" in remedy(plan_with(2), smaller)
    expected = f"use shorter sequences (`llmb run {RUN_TOML} --set model.seq_len=2048`), or more GPUs"
    assert remedy(plan_with(1), smaller) == expected


def test_no_remedy_for_a_run_with_a_micro_batch_of_1_names_a_smaller_one() -> None:
    registry = PluginRegistry()
    signatures = [*known_signatures(), *(each for name in framework_names() for each in registry.signatures(name))]
    remedies = {each.remedy for each in signatures} | {each.remedy for each in CAUSES.values()}
    assert any("a job of llmb has all memory of its nodes" in each for each in remedies), (
        "those of the scheduler's package are missing"
    )
    affected = [text for text in remedies if "micro_batch_size=1" in text]
    assert affected
    assert not [text for text in affected if "micro" in remedy(plan_with(1), text)]


def test_the_address_of_a_recipe_in_a_file_has_the_path_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mylm.toml"
    file.write_text('command = ["true"]\n[log]\nline = "iter {step}: {time_ms}ms"\n[recipe]\nsteps = 2\nseq_len = 1\n'
                    'params = 1e3\ndtypes = ["fp32"]\nglobal_batch_size = 1\n')  # fmt: skip
    workload = {"recipe": str(file), "gpu_type": "cpu", "dtype": "fp32", "gpus": 1}
    plan = plan_tables({"workload": workload})
    assert remedy(plan, "`llmb recipes ADDRESS` prints it") == f"`llmb recipes '{file}#mylm'` prints it"


def test_the_node_and_the_path_come_from_the_log(plan: RunPlan) -> None:
    evidence = "OSError: [Errno 122] Disk quota exceeded: '/home/me/ckpt/step_100'"
    assert remedy(plan, "`ls -d PATH`", evidence=evidence) == "`ls -d /home/me/ckpt/step_100`"
    assert remedy(plan, "`ls -d PATH`", evidence="cannot copy /a/b to /c/d") == "`ls -d PATH`"
    evidence = "/usr/bin/python3: can't open file '/x/train.py': [Errno 2] No such file or directory"
    assert remedy(plan, "`ls -d PATH`", evidence=evidence) == "`ls -d /x/train.py`"
    assert remedy(plan, "`llmb run SPEC --set target.exclude=NODE`", host="node07").endswith("target.exclude=node07`")


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "a;reboot", "$(x)", "a b", "`x`"])
def test_names_in_a_log_add_nothing_to_a_command(plan: RunPlan, name: str) -> None:
    found = remedy(plan, "`ssh NODE ls PATH`", host=name, evidence=f"No such file: '/data/{name}/x'")
    assert found in ("`ssh NODE ls PATH`", "`ssh NODE ls /data/-oProxyCommand=x/x`")


def test_a_longer_time_limit_suffices_for_the_steps(plan: RunPlan) -> None:
    def longer(limit_s: int, steps_done: int) -> str:
        limited = attrs.evolve(plan, job=attrs.evolve(plan.job, time_limit_s=limit_s))
        failure = Failure(cause="c", remedy="`--set workload.time_limit=LONGER`")
        return fill_remedy(failure, limited, RECORD, steps_done).remedy.strip("`").partition("=")[2]

    assert plan.run.steps == 50
    assert longer(4 * 3600, 0) == longer(4 * 3600, 45) == "8h"
    assert longer(60, 10) == longer(4, 10) == "7m"  # Slurm rounds 4 s up to a minute
    assert longer(365 * 24 * 3600, 1) == "8760h"
