"""The tokenizer of Llama 3.1 405B: downloaded without a token, and loaded offline by the transformers of the image."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Paths, Run, Task
from llmb_nemo_launcher.plugin import NeMoLauncher

VOCABULARY = {"h": 0, "e": 1, "l": 2, "o": 3, "he": 4, "ll": 5, "hell": 6, "hello": 7, "<|endoftext|>": 8}
MERGES = "#version: 0.2\nh e\nl l\nhe ll\nhell o\n"
VERSION = "transformers==4.44.2"  # NeMo 2.0.0 of the image nemo:24.09 requires 4.44 or later
LOAD = """
import json, sys
from transformers import AutoTokenizer
loaded = [AutoTokenizer.from_pretrained(sys.argv[1], use_fast=fast) for fast in (False, True)]
print(json.dumps([[type(each).__name__, each.encode("hello"), len(each), each.eos_token_id] for each in loaded]))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """Serve the repository of the tokenizer, with a small vocabulary."""
    folder = tmp_path / "hub/nvidia/megatron-gpt2-345m/resolve/main"
    folder.mkdir(parents=True)
    (folder / "vocab.json").write_text(json.dumps(VOCABULARY))
    (folder / "merges.txt").write_text(MERGES)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "hub"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def tokenizer(load_run: Callable[..., Run[Any]], hub: str, tmp_path: Path) -> tuple[Task, Path]:
    """Download the tokenizer as a run would. Return the task, and the folder that the configuration names."""
    run = attrs.evolve(load_run("llama3.1-405b", "bf16", 576), paths=Paths(run="/r", cache=str(tmp_path / "cache")))
    dataset = NeMoLauncher().prepare_dataset(run)
    assert dataset is not None
    [task] = dataset.tasks
    assert isinstance(task.work, str)
    env = {"PATH": os.environ["PATH"], "HF_ENDPOINT": hub}
    subprocess.run(["bash", "-c", task.work], env=env, check=True)
    [text] = [text for path, text in NeMoLauncher().build_job(run).files.items() if path.endswith(".yaml")]
    named = json.loads(text)["model"]["tokenizer"]
    assert (named["library"], "vocab_file" in named) == ("huggingface", False)
    return task, Path(named["type"])


@pytest.mark.real
def test_the_folder_names_the_class_of_the_tokenizer(tokenizer: tuple[Task, Path]) -> None:
    task, folder = tokenizer

    assert {path.name for path in folder.iterdir()} == {"vocab.json", "merges.txt", "tokenizer_config.json"}
    assert json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"] == "GPT2Tokenizer"
    assert subprocess.run(["bash", "-c", task.check], check=False).returncode == 0
    (folder / "tokenizer_config.json").unlink()
    assert subprocess.run(["bash", "-c", task.check], check=False).returncode != 0


@pytest.mark.real
@pytest.mark.slow
def test_transformers_loads_the_tokenizer_without_a_network(
    tokenizer: tuple[Task, Path], python_with: Callable[[str], str]
) -> None:
    _, folder = tokenizer
    offline = {"PATH": os.environ["PATH"], "TRANSFORMERS_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:1"}
    command = [python_with(VERSION), "-c", LOAD, str(folder)]
    done = subprocess.run(command, env=offline, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["GPT2Tokenizer", [7], 9, 8], ["GPT2TokenizerFast", [7], 9, 8]]
