"""Preparation of a run: tokenizers are downloaded or copied; each shard of the Pile is one task; both are checked."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest

from llmb import Dataset, Image, Job, Paths, Run, Task
from llmb_nemo_launcher.plugin import NeMoLauncher

LoadRun = Callable[..., "Run[Any]"]
TOKEN = "hf_0123456789abcdef"
CURL = pytest.mark.skipif(not shutil.which("curl"), reason="curl, which downloads tokenizers, is not installed")
STAGES = ["download", "extract", "preprocess"]
DATA = "/w/cache/llama3.1-dataset"


def tasks_of(run: Run[Any]) -> tuple[Task, ...]:
    dataset = NeMoLauncher().prepare_dataset(run)
    assert isinstance(dataset, Dataset)
    return dataset.tasks


def pile_of(run: Run[Any]) -> list[tuple[Task, Job]]:
    return [(task, task.work) for task in tasks_of(run) if isinstance(task.work, Job)]


# Tasks


def test_two_sizes_share_one_tokenizer_and_one_dataset(load_run: LoadRun) -> None:
    assert tasks_of(load_run("llama3.1-8b", "bf16", 8)) == tasks_of(load_run("llama3.1-70b", "fp8", 2048))


def test_synthetic_data_and_a_tokenizer_in_the_image_need_no_task(load_run: LoadRun) -> None:
    assert NeMoLauncher().prepare_dataset(load_run("grok1-314b", "bf16", 8)) is None


def test_only_the_gated_tokenizer_needs_a_token(load_run: LoadRun) -> None:
    gated, *_ = tasks_of(load_run("llama3.1-8b", "bf16", 8))
    [open_to_all] = tasks_of(load_run("llama3.1-405b", "bf16", 32))

    assert (gated.kind, gated.secrets) == ("tokenizer of meta-llama/Meta-Llama-3-8B", ("HF_TOKEN",))
    assert (open_to_all.kind, open_to_all.secrets) == ("tokenizer of nvidia/megatron-gpt2-345m", ())


def test_each_shard_of_the_pile_is_a_task_of_one_node_beside_the_other(load_run: LoadRun) -> None:
    shards = pile_of(load_run("llama3.1-70b", "bf16", 64))
    assert [(job.nodes, job.tasks_per_node) for _, job in shards] == [(1, 1), (1, 1)]
    assert [(task.kind, task.space_gb) for task, _ in shards] == [
        ("shard 00 of the Pile", 50),
        ("shard 01 of the Pile", 50),
    ]
    assert [task.concurrent for task, _ in shards] == [False, True]  # the first one needs the tokenizer
    assert len({job.directory for _, job in shards}) == 2


@pytest.mark.parametrize("shard", [0, 1])
def test_three_stages_create_a_shard(load_run: LoadRun, shard: int) -> None:
    _, job = pile_of(load_run("llama3.1-70b", "bf16", 64))[shard]

    assert job.environment.base == Image(ref="nvcr.io/nvidia/nemo:24.09")
    assert [phase.name for phase in job.phases] == ["clear", *STAGES]
    for phase in job.phases[1:]:
        assert (phase.ranks, phase.measured) == ("all", False)
        words = set(phase.command)
        assert {"cluster_type=bcp", f"file_numbers={shard}-{shard}", f"data_dir={DATA}", "rm_downloaded=True"} <= words
        assert "tokenizer_type=/w/cache/tokenizers/meta-llama/Meta-Llama-3-8B" in words
        script = (
            "/opt/NeMo-Framework-Launcher/launcher_scripts/nemo_launcher/collections/dataprep_scripts/pile_dataprep/"
        )
        assert f"{script}{phase.name}.py" in words


def test_a_spec_sets_the_time_limit_of_the_pile(load_run: LoadRun) -> None:
    options = ("workload.time_limit=600", "framework.dataset_time_limit=5h")
    for overrides, limit_s in (((), 10800), (options, 18000)):
        run = load_run("llama3.1-70b", "bf16", 64, *overrides)
        assert ({job.time_limit_s for _, job in pile_of(run)}, run.differences) == ({limit_s}, ())


@pytest.mark.parametrize("shard", [0, 1])
def test_each_stage_must_write_the_files_that_the_next_stage_reads(load_run: LoadRun, shard: int) -> None:
    _, job = pile_of(load_run("llama3.1-70b", "bf16", 64))[shard]
    made = [f"{DATA}/my-llama_0{shard}_text_document.{suffix}" for suffix in ("bin", "idx")]
    outputs = {phase.name: list(phase.outputs) for phase in job.phases}

    assert outputs == {
        "clear": [],
        "download": [f"{DATA}/0{shard}.jsonl.zst"],
        "extract": [f"{DATA}/0{shard}.jsonl"],
        "preprocess": made,
    }
    assert set(job.phases[0].command[3:]) == {path for paths in outputs.values() for path in paths}


# Check of the Pile


def write_shard(folder: Path, shard: int, token: int = 4, lengths: tuple[int, ...] = (3, 5, 2)) -> tuple[Path, Path]:
    """Write a dataset in Megatron's format and return its index and data files."""
    code = {1: 1, 2: 8, 4: 4, 8: 5}[token]
    offsets = [token * sum(lengths[:each]) for each in range(len(lengths))]
    documents = range(len(lengths) + 1)
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(documents))
    index += struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(offsets)}q", *offsets)
    index += struct.pack(f"<{len(documents)}q", *documents)
    base = folder / f"my-llama_{shard:02d}_text_document"
    files = base.with_suffix(".idx"), base.with_suffix(".bin")
    files[0].write_bytes(index)
    files[1].write_bytes(bytes(token * sum(lengths)))
    return files


@pytest.fixture
def check(load_run: LoadRun, tmp_path: Path) -> Callable[[], bool]:
    """Return a function that runs the check of the second shard of the Pile in a new cache."""
    run = attrs.evolve(load_run("llama3.1-8b", "bf16", 8), paths=Paths(run="/r", cache=str(tmp_path)))
    task, _ = pile_of(run)[1]
    (tmp_path / "llama3.1-dataset").mkdir()
    return lambda: not subprocess.run(["bash", "-c", f"({task.check}\n)"], capture_output=True, check=False).returncode


@pytest.mark.parametrize("token", [1, 2, 4, 8])
def test_the_check_accepts_a_complete_dataset(check: Callable[[], bool], tmp_path: Path, token: int) -> None:
    write_shard(tmp_path / "llama3.1-dataset", 1, token)

    assert check()


@pytest.mark.parametrize("file", [0, 1], ids=["index", "data"])
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "longer", "of another"])
def test_the_check_rejects_a_damaged_dataset(check: Callable[[], bool], tmp_path: Path, file: int, damage: str) -> None:
    folder = tmp_path / "llama3.1-dataset"
    write_shard(folder, 0)  # of another task
    damaged = write_shard(folder, 1)[file]
    data = damaged.read_bytes()
    if damage == "gone":
        damaged.unlink()
    elif damage == "of another":
        write_shard(tmp_path, 1, lengths=(4, 9))
        damaged.write_bytes((tmp_path / damaged.name).read_bytes())
    else:
        damaged.write_bytes({"empty": b"", "cut": data[:-1], "longer": data + b"\0"}[damage])

    assert not check()


def test_the_check_rejects_a_file_that_is_not_an_index(check: Callable[[], bool], tmp_path: Path) -> None:
    folder = tmp_path / "llama3.1-dataset"
    for shard in (0, 1):
        index, _ = write_shard(folder, shard)
        index.write_bytes(b"not an index, although the file is longer than a header")

    assert not check()


# Tokenizers, copied from the publisher's repository

POINTER = (
    "version https://git-lfs.github.com/spec/v1\noid sha256:6dfd8b970f437002fc445214304969fe59e64d4f\nsize 4545602\n"
)


def test_the_tokenizer_of_nemotron_is_copied_from_the_publisher_s_repository(
    load_run: LoadRun, tokenizers: Any, tmp_path: Path
) -> None:
    run = load_run("nemotron4-340b", "bf16", 128)
    config = next(text for path, text in NeMoLauncher().build_job(run).files.items() if path.endswith(".yaml"))
    assert '"/w/cache/tokenizers/NVIDIA/dgxc-benchmarking/nemotron_2_256k.model"' in config

    [repository] = NeMoLauncher().prepare_env(run).repositories
    source = Path(repository.folder(str(tmp_path / "ca che"))) / "nemotron"
    source.mkdir(parents=True)
    (source / "nemotron_2_256k.model").write_bytes(b"\n\x0e\0\n<unk>\x15")
    task = tokenizers("nemotron4-340b", 128)

    assert task.secrets == ()
    assert not is_complete(task)
    assert fetch(task, None, "").returncode == 0
    assert is_complete(task)


@pytest.mark.parametrize("content", [POINTER, "", None], ids=["pointer", "empty", "missing"])
def test_a_pointer_of_git_lfs_is_rejected_when_copied(
    load_run: LoadRun, tokenizers: Any, tmp_path: Path, content: str | None
) -> None:
    [repository] = NeMoLauncher().prepare_env(load_run("nemotron4-340b", "bf16", 128)).repositories
    source = Path(repository.folder(str(tmp_path / "ca che"))) / "nemotron" / "nemotron_2_256k.model"
    source.parent.mkdir(parents=True)
    if content is not None:
        source.write_text(content)
    task = tokenizers("nemotron4-340b", 128)
    placed = tmp_path / "ca che" / "tokenizers" / "NVIDIA" / "dgxc-benchmarking" / "nemotron_2_256k.model"
    done = fetch(task, None, "")

    assert done.returncode == 1
    assert done.stderr == f"{source} is missing, empty or a pointer of Git LFS; copy the real file to {placed}\n"
    placed.write_text(POINTER)
    assert not is_complete(task)
    placed.write_text("the real file")  # as the message advises
    assert is_complete(task)
    assert fetch(task, None, "").returncode == 0
    assert placed.read_text() == "the real file"


# Tokenizers, downloaded from a server of these tests


class Hub(BaseHTTPRequestHandler):
    """Server like Hugging Face that records its requests and the command lines visible during each request."""

    status = 200
    content = b""
    requested: list[str]
    tokens: set[str | None]
    seen: list[str]

    def do_GET(self) -> None:
        hub = type(self)
        hub.requested.append(self.path)
        hub.tokens.add(self.headers.get("Authorization"))
        hub.seen += command_lines()
        self.send_response(hub.status)
        body = hub.content or f"content of {self.path}".encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def command_lines() -> list[str]:
    """Return the command lines of all processes, as any user can read them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has exited
            found.append(path.read_text(errors="replace"))
    return found


@pytest.fixture
def hub() -> Iterator[type[Hub]]:
    class Fresh(Hub):
        requested: list[str] = []  # noqa: RUF012  # one for each test
        tokens: set[str | None] = set()  # noqa: RUF012  # as above
        seen: list[str] = []  # noqa: RUF012  # as above

    with ThreadingHTTPServer(("127.0.0.1", 0), Fresh) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Fresh.url = f"http://127.0.0.1:{server.server_address[1]}"  # type: ignore[attr-defined]
        yield Fresh
        server.shutdown()


def fetch(task: Task, hub: Any, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    assert isinstance(task.work, str)
    env = {"PATH": os.environ["PATH"], **({"HF_ENDPOINT": hub.url} if hub else {})}
    env |= {"HF_TOKEN": token} if token else {}
    return subprocess.run(["bash", "-c", task.work], env=env, capture_output=True, text=True, check=False)


def is_complete(task: Task) -> bool:
    return subprocess.run(["bash", "-c", task.check], capture_output=True, check=False).returncode == 0


@pytest.fixture
def tokenizers(load_run: LoadRun, tmp_path: Path) -> Callable[[str, int], Task]:
    def of(name: str, gpus: int) -> Task:
        run = attrs.evolve(load_run(name, "bf16", gpus), paths=Paths(run="/r", cache=str(tmp_path / "ca che")))
        return tasks_of(run)[0]

    return of


@CURL
@pytest.mark.real
def test_a_gated_tokenizer_is_downloaded_with_a_token_that_stays_secret(
    tokenizers: Any, hub: Any, tmp_path: Path
) -> None:
    task = tokenizers("llama3.1-8b", 8)
    assert not is_complete(task)
    done = fetch(task, hub, f"{TOKEN}\n")  # as printed by `cat token`
    folder = tmp_path / "ca che" / "tokenizers" / "meta-llama" / "Meta-Llama-3-8B"

    assert done.returncode == 0, done.stderr
    assert is_complete(task)
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"),
        "generation_config.json",
    }
    assert hub.tokens == {f"Bearer {TOKEN}"}
    assert len(hub.seen) > len(hub.requested)
    assert TOKEN not in "".join(hub.seen) + done.stdout + done.stderr


@CURL
@pytest.mark.real
def test_a_download_removes_what_is_left_of_downloads_that_died(tokenizers: Any, hub: Any, tmp_path: Path) -> None:
    folders = tmp_path / "ca che" / "tokenizers" / "meta-llama"
    dead, living = folders / "Meta-Llama-3-8B.partial.1", folders / "Meta-Llama-3-8B.partial.2"
    for folder in (dead, living):
        folder.mkdir(parents=True)
        (folder / "config.json").touch()
    os.utime(dead, (0, 0))
    assert fetch(tokenizers("llama3.1-8b", 8), hub).returncode == 0
    assert sorted(each.name for each in folders.iterdir()) == ["Meta-Llama-3-8B", living.name]


@CURL
@pytest.mark.real
def test_an_open_tokenizer_is_downloaded_without_a_token(tokenizers: Any, hub: Any) -> None:
    task = tokenizers("llama3.1-405b", 32)

    assert fetch(task, hub, "").returncode == 0
    assert is_complete(task)
    assert hub.tokens == {None}
    assert hub.requested == [f"/nvidia/megatron-gpt2-345m/resolve/main/{name}" for name in ("vocab.json", "merges.txt")]


@CURL
@pytest.mark.real
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "{site} rejected HF_TOKEN (401): export a valid token; create one at {site}/settings/tokens"),
        (403, "HF_TOKEN has no access to meta-llama/Meta-Llama-3-8B (403): request access at {site}/meta-llama/"),
        (404, "meta-llama/Meta-Llama-3-8B has no file config.json (404)"),
        (501, "config.json of meta-llama/Meta-Llama-3-8B could not be downloaded from {site}: HTTP status 501"),
    ],
)  # fmt: skip
def test_a_failed_download_reports_the_fix_and_writes_nothing(
    tokenizers: Any, hub: Any, tmp_path: Path, status: int, message: str
) -> None:
    hub.status = status
    task = tokenizers("llama3.1-8b", 8)
    done = fetch(task, hub)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(message.format(site=hub.url))
    assert TOKEN not in done.stdout + done.stderr
    assert not is_complete(task)
    assert not list((tmp_path / "ca che").rglob("*.json"))


@CURL
@pytest.mark.real
def test_a_downloaded_pointer_of_git_lfs_is_rejected(tokenizers: Any, hub: Any) -> None:
    hub.content = POINTER.encode()
    task = tokenizers("llama3.1-405b", 32)
    done = fetch(task, hub, "")

    assert done.returncode == 1
    assert done.stderr == "the downloaded vocab.json of nvidia/megatron-gpt2-345m is empty or a pointer of Git LFS\n"
    assert not is_complete(task)


@CURL
@pytest.mark.real
def test_an_unreachable_server_is_reported(tokenizers: Any) -> None:
    class Gone:
        url = "http://127.0.0.1:1"

    done = fetch(tokenizers("llama3.1-8b", 8), Gone)

    assert done.returncode == 1
    assert "could not be downloaded from http://127.0.0.1:1: curl failed with exit code 7" in done.stderr
