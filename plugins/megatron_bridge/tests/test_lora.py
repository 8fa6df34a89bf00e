"""LoRA: the job, the checkpoint and the dataset that it needs, and the sequences of each configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Job, Paths, Run, SpecError, Task
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


def test_files_that_were_downloaded_before_need_no_token_and_stay_comparable(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "h100", "fp8", 8, framework={"hf_token": False})
    assert MegatronBridge().prepare_env(run).secrets == ()
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


def test_an_override_of_the_dataset_has_no_effect_and_is_an_error(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "h100", "fp8", 8, framework={"config": {"dataset.seed": 3}})
    with pytest.raises(SpecError, match=r"framework.config.dataset.seed: the script replaces the dataset"):
        MegatronBridge().build_job(run)


def test_an_override_of_the_checkpoint_has_no_effect_and_is_an_error(load_run: LoadRun) -> None:
    run = load_run(RECIPE, "h100", "fp8", 8, framework={"config": {"checkpoint.pretrained_checkpoint": "/models"}})
    with pytest.raises(SpecError, match=r"pretrained_checkpoint: llmb sets this key; expected framework.checkpoint"):
        MegatronBridge().build_job(run)


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
    "megatron/bridge/data/utils.py": """
from pathlib import Path
def hf_train_valid_test_datasets_provider(samples, config, tokenizer):
    name = tokenizer.replace("/", "--")
    packed = Path(config.dataset_root, "packed", f"{name}_pad_seq_to_mult{config.pad_seq_to_mult}")
    packed.mkdir(parents=True)
    for name in ("training", "validation"):
        (packed / f"{name}_{config.seq_length}.npy").write_text(str(config.packed))
    Path(config.dataset_root, "test.jsonl").write_text(str(config.dataset_kwargs))
""",
    "megatron/bridge/training/tokenizers/config.py": """
class TokenizerConfig:
    def __init__(self, tokenizer_type, tokenizer_model):
        self.tokenizer_model = tokenizer_model
""",
    "megatron/bridge/training/tokenizers/tokenizer.py": """
def build_tokenizer(config):
    return config.tokenizer_model
""",
    "utils/datasets.py": """
import types
def create_squad_dataset_config(dataset_root, seq_length, packed, pad_seq_to_mult):
    return types.SimpleNamespace(**locals())
""",
    "numpy/__init__.py": "from . import random",
    "numpy/random.py": "def seed(number): assert number == 5678",
}
"""The functions of Megatron-Bridge at commit f07871e2 that the script calls, with their arguments and files."""


def is_complete(task: Task) -> bool:
    return subprocess.run(["bash", "-c", task.check], check=False).returncode == 0


def test_the_job_packs_the_dataset_even_after_an_interrupted_one(load_run: LoadRun, tmp_path: Path) -> None:
    for name, text in PACKAGES.items():
        file = tmp_path / "packages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    paths = Paths(run=str(tmp_path / "run"), cache=str(tmp_path / "cache"))
    task = tasks_of(attrs.evolve(load_run(RECIPE, "h100", "fp8", 8), paths=paths))["packed SQuAD"]
    for path, text in job_of(task).files.items():
        Path(path).parent.mkdir(parents=True)
        Path(path).write_text(text)
    interrupted = tmp_path / "cache/datasets/packed-squad-llama-3-4096-1.partial/packed"
    interrupted.mkdir(parents=True)

    assert not is_complete(task)
    for phase in job_of(task).phases:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "packages")}
        subprocess.run(phase.command, check=True, env=env)
        assert all(Path(file).stat().st_size for file in phase.outputs)
    assert is_complete(task)
    folder = tmp_path / "cache/datasets/packed-squad-llama-3-4096-1"
    assert (folder / "test.jsonl").read_text() == "{'pad_to_max_length': True}"
    assert not interrupted.parent.exists()
