"""LoRA: the job, the checkpoint and the dataset that it needs, and the sequences of each configuration."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmb import Job, Run, SpecError, Task
from llmb_megatron_bridge import packed_squad
from llmb_megatron_bridge.plugin import MegatronBridge

LoadRun = Callable[..., "Run[Any]"]
RECIPE = "llama3-70b-lora@26.06"


def arguments_of(run: Run[Any]) -> dict[str, str]:
    words = MegatronBridge().build_job(run).phases[-1].command
    return {word: words[place + 1] for place, word in enumerate(words[:-1]) if word.startswith("--")}


def tasks_of(run: Run[Any]) -> dict[str, Task]:
    """Return the preparation of a run, by what each task creates."""
    dataset = MegatronBridge().prepare_dataset(run)
    return {task.kind: task for task in dataset.tasks} if dataset else {}


def job_of(task: Task) -> Job:
    assert isinstance(task.work, Job)
    return task.work


def test_a_run_starts_from_the_converted_checkpoint_and_reads_packed_squad(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "h100", "fp8", 8)
    arguments = arguments_of(run)
    assert (arguments["--task"], arguments["--data"]) == ("lora", "squad_packed")
    assert arguments["--pretrained_checkpoint"] == "/w/cache/checkpoints/meta-llama-3-70b"
    assert arguments["--dataset_root"] == "/w/cache/datasets/packed-squad-llama-3-4096-1"
    assert MegatronBridge().prepare_env(run).secrets == ("HF_TOKEN",)


def test_one_job_with_gpus_converts_the_checkpoint_in_the_image_of_the_run(load_run: LoadRun) -> None:
    task = tasks_of(load_run(RECIPE, "gb200", "fp8", 16))["checkpoint of Llama 3 70B"]
    job = job_of(task)
    assert (job.nodes, job.tasks_per_node, job.gpus_per_node, job.time_limit_s) == (1, 1, 4, 3300)
    assert job.environment.secrets == ("HF_TOKEN",)
    command = job.phases[1].command
    assert command[1].endswith("/examples/conversion/convert_checkpoints.py")
    assert command[command.index("--hf-model") + 1] == "meta-llama/Meta-Llama-3-70B"


def test_a_prepared_folder_gets_its_name_when_it_is_complete(load_run: LoadRun) -> None:
    for task in tasks_of(load_run(RECIPE, "h100", "bf16", 8)).values():
        clear, create, move = job_of(task).phases
        partial, result = move.command[-2:]
        assert partial == f"{result}.partial"
        assert set(clear.command[-2:]) == {partial, result}
        assert partial in create.command
        assert result not in create.command
        assert all(
            file.startswith(f"{partial}/") and file.replace(partial, result) in task.check for file in create.outputs
        )


def test_each_length_of_sequences_has_a_dataset(load_run: LoadRun) -> None:
    shorter, usual = (tasks_of(load_run(RECIPE, gpu, "bf16", 8))["packed SQuAD"] for gpu in ("gb200", "b300"))
    assert shorter.key != usual.key
    assert "training_2048.npy" in shorter.check
    assert "training_4096.npy" in usual.check


def test_context_parallelism_needs_texts_of_even_parts(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "gb300", "bf16", 16, parallelism={"cp": 2})
    task = tasks_of(run)["packed SQuAD"]
    assert "_pad_seq_to_mult4/training_4096.npy" in task.check
    assert arguments_of(run)["--dataset_root"].endswith("-4096-4")


def test_both_jobs_may_run_at_the_same_time_and_all_runs_share_them(load_run: LoadRun) -> None:
    first, second = (tasks_of(load_run(RECIPE, "h100", "fp8", gpus)) for gpus in (8, 16))
    assert [task.key for task in first.values()] == [task.key for task in second.values()]
    assert [task.concurrent for task in first.values()] == [False, True]


def test_a_published_configuration_with_shorter_sequences_is_no_proxy(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "gb200", "bf16", 8)
    assert (run.seq_len, run.proxy, run.differences) == (2048, False, ())
    assert "proxy" not in run.name


def test_a_spec_may_name_a_checkpoint_that_exists_already(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "h100", "fp8", 8, framework={"checkpoint": "/models/llama3-70b"})
    assert list(tasks_of(run)) == ["packed SQuAD"]
    assert arguments_of(run)["--pretrained_checkpoint"] == "/models/llama3-70b"
    mounts = {mount.source: mount.read_only for mount in MegatronBridge().build_job(run).mounts}
    assert mounts["/models/llama3-70b"]
    assert run.differences == ()


@pytest.mark.parametrize(
    ("recipe", "point", "folder", "message"),
    [
        (
            RECIPE,
            ("h100", "fp8", 8),
            "models/llama3",
            r'framework.checkpoint: invalid path "models/llama3"; expected an abs',
        ),
        ("llama3.1-70b@26.06", ("h100", "fp8", 64), "/models", r"framework.checkpoint: \S+ starts from random weights"),
    ],
)
def test_a_checkpoint_must_fit_the_recipe(
    load_run: LoadRun, recipe: str, point: tuple[str, str, int], folder: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        MegatronBridge().build_job(load_run(recipe, *point, framework={"checkpoint": folder}))


def test_the_jobs_may_get_more_time(load_run: LoadRun) -> None:
    tasks = tasks_of(load_run(RECIPE, "h100", "fp8", 8, framework={"preparation_time_limit": "3h"}))
    assert {job_of(task).time_limit_s for task in tasks.values()} == {3 * 3600}


def test_a_run_with_cached_files_needs_no_token(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "h100", "fp8", 8, framework={"hf_token": False})
    assert MegatronBridge().build_job(run).env["TRANSFORMERS_OFFLINE"] == "1"
    assert all(job_of(task).environment.secrets == () for task in tasks_of(run).values())


def test_the_length_of_a_sequence_is_the_only_size_that_a_spec_may_change(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "h100", "fp8", 8, model={"seq_len": 2048})
    assert "model.seq_length=2048" in MegatronBridge().build_job(run).phases[-1].command
    assert arguments_of(run)["--dataset_root"].endswith("-2048-1")
    with pytest.raises(SpecError, match=r"model.ffn: the script of \S+ has no argument for it"):
        MegatronBridge().build_job(load_run(RECIPE, "h100", "fp8", 8, model={"ffn": 14336}))


PACKAGES = {
    "megatron/bridge/data/utils.py": "def hf_train_valid_test_datasets_provider(samples, config, tokenizer):\n"
    "    text = f'{config.seq_length} {config.packed} {config.pad_seq_to_mult} {config.dataset_kwargs} {tokenizer}'\n"
    "    open(f'{config.dataset_root}/test.jsonl', 'w').write(text)\n",
    "megatron/bridge/training/tokenizers/config.py": "class TokenizerConfig:\n"
    "    def __init__(self, **named): self.named = named\n",
    "megatron/bridge/training/tokenizers/tokenizer.py": "def build_tokenizer(config):\n"
    "    return config.named['tokenizer_model']\n",
    "scripts/utils/datasets.py": "import types\n"
    "def create_squad_dataset_config(dataset_root, seq_length, packed, pad_seq_to_mult):\n"
    "    return types.SimpleNamespace(**locals())\n",
    "numpy/random.py": "def seed(number): assert number == 5678\n",
    "numpy/__init__.py": "from . import random\n",
}
"""The functions of Megatron-Bridge at commit f07871e2 that the script calls, with their arguments."""


def test_the_dataset_is_packed_by_the_functions_that_the_training_calls(
    tmp_path: Path,
) -> None:
    for name, text in PACKAGES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    arguments = (tmp_path / "scripts", "meta-llama/Meta-Llama-3-70B", "4096", "1", tmp_path)
    command = [sys.executable, packed_squad.__file__, *map(str, arguments)]
    subprocess.run(command, check=True, env={"PYTHONPATH": str(tmp_path)})
    assert (tmp_path / "test.jsonl").read_text() == (
        "4096 True 1 {'pad_to_max_length': True} meta-llama/Meta-Llama-3-70B"
    )
