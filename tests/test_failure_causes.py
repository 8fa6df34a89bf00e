"""The cause of a failure in logs that no signature was written for, and in the shared logs of real failures.

The made logs follow public reports, in our own words: each has one cause and the usual consequences around it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

REAL = Path(__file__).parents[2] / "shared" / "logs" / "failure"
WATCHDOG = (
    "[rank{0}]:[E1122 10:20:07.8 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=91, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
)
CHILD_FAILED = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
pretrain.py FAILED
Failures:
  <NO_OTHER_FAILURES>
Root Cause (first observed failure):
[0]:
  time      : 2026-11-20_10:10:01
  host      : gpu-17.cluster
  rank      : 11 (local_rank: 3)
  exitcode  : {0} (pid: 4711)
  error_file: <N/A>
  traceback : {1}
"""
KILLED = CHILD_FAILED.format(-9, "Signal 9 (SIGKILL) received by PID 4711")
IMPORT = (
    "slurmstepd: error: pyxis: child 811 failed with error code: 1\nslurmstepd: error: pyxis: failed to import docker "
    "image\nslurmstepd: error: pyxis:     [INFO] Fetching image manifest\nslurmstepd: error: pyxis:     [ERROR] URL "
)
NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def found(llmb: Llmb, log: Path, framework: str = "megatron_bridge") -> tuple[str | None, int | None, str | None]:
    """Return the cause, the rank and the host."""
    failure = llmb("parse", log, "--framework", framework, "--json").json["failure"]
    return (failure["cause"], failure["rank"], failure["host"]) if failure else (None, None, None)


def exited(ranks: str, code: int = 1, host: str = "node07") -> str:
    return f"srun: error: {host}: tasks {ranks}: Exited with exit code {code}\n"


def labelled(rank: int, *lines: str) -> str:
    return "".join(f"{rank}: {line}\n" for line in lines)


TRACEBACK = ("Traceback (most recent call last):", '  File "/opt/train.py", line 70, in <module>', "    main()")

MADE = {
    # github.com/NVIDIA/nccl/issues/1405: a link fails, and all ranks time out
    "InfiniBand port": (
        "node03:88:99 [3] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n"
        + "node04:71:82 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.3<54862> "
        "with status=12 opcode=0 len=0 vendor err 129 (Recv)\n" + WATCHDOG.format(3),
        "a port of the network failed (port error)", None, "node03",
    ),
    "InfiniBand retries only": (
        "node04:71:82 [3] NCCL WARN NET/IB : Got completion from peer 10.0.0.3<54862> with status=12 opcode=0\n"
        + WATCHDOG.format(3) + WATCHDOG.format(4),
        "the network between the nodes failed (10.0.0.3)", None, "node04",
    ),
    "host out of memory, by torchrun": (
        "[rank0]: waiting\n" + KILLED,
        "unknown: a process exited with code -9 (killed, often because the host is out of memory)",
        11, "gpu-17.cluster",
    ),
    "exception of one rank behind the reports of all": (
        labelled(11, *TRACEBACK, "ValueError: sequence length 8190 is not a multiple of 8")
        + WATCHDOG.format(0) + WATCHDOG.format(2) + CHILD_FAILED.format(1, NO_TRACEBACK) + exited("8-15"),
        "a process failed with ValueError", 11, "gpu-17.cluster",
    ),
    "exit code of srun only": (
        "starting\n" + exited("3", 2) + exited("0-2,4-7", 143, "node08"),
        "unknown: a rank failed (exit code 2)", 3, "node07",
    ),
    "ECC error and its consequences": (
        labelled(5, "RuntimeError: CUDA error: uncorrectable ECC error encountered")
        + WATCHDOG.format(1) + exited("0-3", 134, "node01") + exited("4-7"),
        "a GPU has a hardware error (uncorrectable ECC error)", 5, "node07",
    ),
    "Xid 79": (
        "node22 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=0, GPU has fallen off the bus.\n"
        + labelled(4, *TRACEBACK, "RuntimeError: CUDA error: unspecified launch failure"),
        "the driver reports a GPU error (79: the hardware fell off the bus)", None, "node22",
    ),
    "shared memory of a container": (
        "[rank2]: RuntimeError: DataLoader worker (pid 311) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory.\n" + CHILD_FAILED.format(1, NO_TRACEBACK),
        "the container has too little shared memory", 2, None,
    ),
    "no token for the hub": (
        labelled(0, *TRACEBACK, "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: "
                 "https://huggingface.co/api/models/x") + exited("0"),
        "the model hub rejected the token", 0, "node07",
    ),
    "tokenizer": (
        labelled(3, *TRACEBACK, "OSError: Can't load tokenizer for 'meta/none'. If you were trying to load it ..."),
        "the tokenizer's files are missing", 3, None,
    ),
    "port in use": (
        "[W1120 socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address "
        "already in use).\n[E1120 socket.cpp:472] [c10d] The server socket has failed to listen on any local network "
        "address.\n" + CHILD_FAILED.format(1, NO_TRACEBACK),
        "a port is in use on the node", 11, "gpu-17.cluster",
    ),
    "quota, before the end of the log": (
        labelled(0, *TRACEBACK, "OSError: [Errno 122] Disk quota exceeded: '/home/me/ckpt/step_100'")
        + WATCHDOG.format(7) + exited("0-7"),
        "the disk quota is used up", 0, "node07",
    ),
    "driver too old": (
        "[rank0]: RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n",
        "the GPU driver is too old for the image", 0, None,
    ),
    "NaN in the gradient": (
        "[rank6]: AssertionError: Rank 6: found NaN in local grad norm in backward pass before data-parallel "
        "communication collective. Device: 6, node: node31\n" + WATCHDOG.format(2),
        "the gradient became NaN", 6, None,
    ),
    "abort by MPI": (
        "MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD\nwith errorcode 17.\n\nNOTE: invoking "
        "MPI_ABORT causes Open MPI to kill all MPI processes.\n",
        "unknown: a process aborted with code 17", 5, None,
    ),
    "first process of mpirun": (
        "[1,2]<stderr>:TypeError: an integer is required\n" + "-" * 40 + "\nmpirun detected that one or more processes "
        "exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n"
        "  Process name: [[5170,1],2]\n  Exit code:    1\n" + "-" * 40 + "\n",
        "a process failed with TypeError", 2, None,
    ),
    "image of a registry on Docker Hub": (
        f"{IMPORT}https://registry-1.docker.io/v2/nvcr.io/nvidia/pytorch/manifests/20.12-py3 returned error code: 401 "
        "Unauthorized\nslurmstepd: error: pyxis: couldn't start container\n" + exited("0-7"),
        "the image's address has a / instead of a # after the registry (nvcr.io)", None, "node07",
    ),
    "unknown image on Docker Hub": (
        f"{IMPORT}https://registry-1.docker.io/v2/a/b/manifests/1.0 returned error code: 401 Unauthorized\n"
        "slurmstepd: error: pyxis: couldn't start container\n" + exited("0-7"),
        "Docker Hub has no such image, or rejected the credentials", None, "node07",
    ),
    "disk full during an import": (
        "slurmstepd: error: pyxis: failed to import docker image\nslurmstepd: error: pyxis:     Write failed because "
        "No space left on device\nslurmstepd: error: pyxis: couldn't start container\n" + exited("0", 1, "gpu3"),
        "a disk is full", 0, "gpu3",
    ),
    "no GPUs in Docker": (
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n',
        "the container engine has no GPU runtime", None, None,
    ),
    "no such image in Docker": (
        "docker: Error response from daemon: manifest for nvcr.io/nvidia/nemo:99 not found: manifest unknown.\n",
        "the image does not exist in the registry", None, None,
    ),
    "Docker's daemon": (
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n",
        "the container engine does not run", None, None,
    ),
    "dataset on one node only": (
        "ML-02: FileNotFoundError: [Errno 2] No such file or directory: '/d/x-GPTDataset-train-document_index.npy'\n"
        "ML-01: [rank0]:[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout: x\n",
        "the dataset's index cache is missing on a node", None, "ML-02",
    ),
    "full disk of Docker": (
        "docker: write /var/lib/docker/tmp/GetImageBlob8: no space left on device.\n", "a disk is full", None, None,
    ),
    "crash in a script": (
        "./run.sh: line 57: 36988 Segmentation fault      (core dumped) python train.py\n",
        "a process crashed (Segmentation fault)", None, None,
    ),
    "kill in a script": (
        "loading\n./run.sh: line 9: 4711 Killed                  python train.py\n",
        "unknown: a process was killed, often because the host is out of memory", None, None,
    ),
    "new program on an old driver": (
        "[rank1]: RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n",
        "the GPU driver is too old for the image", 1, None,
    ),
    "accelerator memory of a TPU": (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 8.00G.\n",
        "the accelerator is out of memory", None, None,
    ),
    "rank that never came": (
        "[rank0]: RuntimeError: Rank 9 failed to pass monitoredBarrier in 1800000 ms\n",
        "a rank waited in vain for the other ranks", 9, None,
    ),
    "connection error of an unknown program": (
        labelled(2, *TRACEBACK, "ConnectionError: the parameter server went away"),
        "unknown: a process failed", 2, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_the_root_cause_wins_over_its_consequences(llmb: Llmb, tmp_path: Path, name: str) -> None:
    text, *expected = MADE[name]
    log = tmp_path / "job.out"
    log.write_text(text)

    assert [*found(llmb, log)] == expected


CAUSES = {
    "01": ("the accelerator is out of memory", 7, "tnasnt5"),
    "09": ("a container mount is invalid", None, None),
    "10": ("the dataset has another format than the program expects", 6, "292KF14"),
    "11": ("the processes are bound to CPU cores that the node does not have", 0, "292KF14"),
    "13": ("a process crashed (segmentation fault)", None, "smciserver"),
    "15": ("the job was cancelled", 0, "node0400"),
    "17": ("the job was cancelled", None, "r6i5n1"),
    "19": ("a GPU has a hardware error (uncorrectable ECC error)", None, None),
    "21": ("a GPU or its driver failed", None, None),
    "23": ("the accelerator is out of memory", None, None),
    "25": ("a step requests GPUs that the job does not have", None, None),
    "27": ("the dataset's index cache is missing on a node", 4, "192.168.205.202"),
    "29": ("the dataset's index cache is missing on a node", 4, "192.168.205.202"),
    "31": ("the accelerator is out of memory", None, "DGX2-1"),
    "35": ("the registry returned an invalid response", None, None),
    "37": ("enroot cannot write its directories on the node", 0, "pyxis-testing-1"),
    "39": ("the registry rejected the credentials for the image", None, None),
    "41": ("the scheduler took the job's nodes for another one", None, "nodeau01"),
    "43": ("the scheduler took the job's nodes for another one", None, "compute0221"),
    "45": ("the job reached its time limit", None, None),
    "47": ("the account has no access to the model's files", None, None),
    "49": ("the accelerator is out of memory", None, None),
    "51": ("the accelerator is out of memory", None, None),
    "53": ("another process of the run died", 3, None),
    "55": ("the loss became NaN", 7, None),
    "57": ("the driver reports a GPU error (31: the program accessed invalid GPU memory)", None, None),
    "59": ("Slurm rejected the job", None, None),
}
"""The cause, the rank and the host for the number of each shared log, according to its INDEX."""


@pytest.mark.parametrize("log", sorted(REAL.glob("*.log")), ids=lambda path: path.stem[:30])
def test_every_real_failure_has_its_true_cause(llmb: Llmb, log: Path) -> None:
    expected = (None, None, None) if "BENIGN" in log.name else CAUSES[log.name[:2]]

    assert found(llmb, log) == expected


def test_an_unknown_cause_shows_the_last_line_of_the_first_rank_that_failed(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    log.write_text(labelled(0, "rank 0 waits") + labelled(3, "no data", "giving up") + exited("3", 2) + exited("0", 1))
    failure = llmb("parse", log, "--framework", "maxtext", "--json").json["failure"]

    assert (failure["cause"], failure["rank"], failure["host"]) == ("unknown: a rank failed (exit code 2)", 3, "node07")
    assert (failure["evidence"], failure["line"], failure["origin"]) == ("3: giving up", 3, None)


def test_the_earliest_of_the_primary_errors_in_the_logs_of_all_ranks_wins(llmb: Llmb, tmp_path: Path) -> None:
    late, early = tmp_path / "rank0.log", tmp_path / "rank1.log"
    late.write_text("[2026-11-22 10:15:09] x\nOSError: [Errno 28] No space left on device\n")
    early.write_text("." * 9000 + "\n[2026-11-22 10:14:02] x\nRuntimeError: CUDA out of memory. Tried to allocate\n")

    point = ("--recipe", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
    failure = llmb("grade", late, early, *point, "--json").json["failure"]
    assert (failure["cause"], failure["rank"], failure["line"]) == ("the accelerator is out of memory", 1, 3)


def test_the_name_of_a_log_gives_the_rank_beside_a_log_of_the_scheduler(llmb: Llmb, tmp_path: Path) -> None:
    texts = {
        "train.0.0.log": "Connection closed by remote peer node7\n",
        "train.0.1.log": "RuntimeError: CUDA out of memory. Tried to allocate\n",
        "out.log": "pulling the image\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    point = ("--recipe", "maxtext/llama2-70b", "--gpu-type", "h100", "--dtype", "bf16", "--gpus", "64")
    failure = llmb("grade", *(tmp_path / name for name in texts), *point, "--json").json["failure"]
    assert (failure["cause"], failure["rank"]) == ("the accelerator is out of memory", 1)


REJECTED = "the registry rejected the credentials for the image"
UNKNOWN_IMAGE = "Docker Hub has no such image, or rejected the credentials"


@pytest.mark.parametrize(
    ("url", "cause", "advice"),
    [
        (
            "registry-1.docker.io/v2/nvcr.io/nvidia/nemo/manifests/24.09",
            "the image's address has a / instead of a # after the registry (nvcr.io)",
            "with a # and no / after the registry",
        ),
        (
            "registry-1.docker.io/v2/harbor/team/nemo/manifests/24.09",
            UNKNOWN_IMAGE,
            "if the address begins with a registry, write its full host name, with a # and no / after it",
        ),
        ("auth.docker.io/token", UNKNOWN_IMAGE, "if the address begins with a registry"),
        ("registry-1.docker.io/v2/library/my.image/manifests/latest", REJECTED, None),
        ("nvcr.io/proxy_auth", REJECTED, None),
        ("gcr.io/v2/deeplearning-platform-release/tf-gpu/manifests/latest", REJECTED, None),
    ],
)
def test_a_hash_after_the_registry_is_advised_only_if_the_address_may_lack_it(
    llmb: Llmb, tmp_path: Path, url: str, cause: str, advice: str | None
) -> None:
    log = tmp_path / "job.out"
    log.write_text(f"{IMPORT}https://{url} returned error code: 401 Unauthorized\n")
    failure = llmb("parse", log, "--framework", "maxtext", "--json").json["failure"]
    assert (failure["cause"], failure["origin"]) == (cause, "user")
    assert (advice or "~/.config/enroot/.credentials") in failure["remedy"]
    assert ("#" in failure["remedy"]) is (advice is not None)
