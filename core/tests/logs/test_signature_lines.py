"""Causes that one line of a log contains, and lines that resemble them."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.logs.failures.choose_cause import diagnose, last_exception

MEMORY = "the accelerator is out of memory"
DIED = "another process of the run died"
GPU_ERROR = "the driver reports a GPU error"

CRASHED = "a process crashed"
LOGGER = "a logger of metrics could not reach its server or its project"
CORRUPTED = "a process corrupted its memory"
MISMATCH = "a library of the image does not match"
NATIVE = "an exception in native code ended a process"
NVSHMEM = "NVSHMEM could not use the network"

CAUSES = {
    "RuntimeError: /te/cuda_driver.cpp:20 in function call: CUDA Error: out of memory": (MEMORY, None),
    "RuntimeError: CUDA driver error: out of memory": (MEMORY, None),
    "RuntimeError: Triton Error [CUDA]: out of memory": (MEMORY, None),
    "RuntimeError: /te/gemm.cu:1 in function x: CUDA Error: an illegal memory access was encountered": (
        "the program accessed GPU memory that is not its own",
        None,
    ),
    "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH": (MISMATCH, None),
    "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0)": (MISMATCH, None),
    "Unable to load any of {libcudnn_engines_precompiled.so.9.1.0, libcudnn_engines_precompiled.so.9}": (
        MISMATCH,
        None,
    ),
    "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear": ("a GPU library failed", None),
    "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR": ("a GPU library failed", None),
    "/src/host/init/init.cu:995: non-zero status: 7 nvshmem detect topo failed ": (NVSHMEM, None),
    "/src/host/init/init.cu:nvshmemi_common_init:1000: non-zero status: 7 nvshmemi_transport_init failed": (
        NVSHMEM,
        None,
    ),
    "/src/host/transport/transport.cpp:420: non-zero status: 7 connect EPS failed ": (NVSHMEM, None),
    "/src/host/init/init.cu:1080: nvshmem initialization failed, exiting": ("NVSHMEM could not start", None),
    "/src/host/init/init.cu:1149: non-zero status: 7 nvshmem_bootstrap failed ": ("NVSHMEM could not start", None),
    "/host/nvshmemx_api.h:63: non-zero status: 7: Connection timed out, exiting... aborting due to error in "
    "nvshmemi_init_thread ": ("NVSHMEM could not start", None),
    "/w/run.sh: line 20:  1234 Segmentation fault      python train.py": (
        f"unknown: {CRASHED} (Segmentation fault)",
        None,
    ),
    "/w/run.sh: line 20: 1234 Bus error               python train.py": (f"unknown: {CRASHED} (Bus error)", None),
    "/w/run.sh: line 20: 1234 Aborted                 python train.py": (f"unknown: {CRASHED} (Aborted)", None),
    "/w/run.sh: line 20: 1234 Floating point exceptionpython train.py": (
        f"unknown: {CRASHED} (Floating point exception)",
        None,
    ),
    "Fatal Python error: Illegal instruction": (f"{CRASHED} (illegal instruction)", None),
    "Fatal Python error: Floating point exception": (f"{CRASHED} (floating point exception)", None),
    "Fatal Python error: init_fs_encoding: failed to get the Python codec": (
        "Python cannot start in the job's environment",
        None,
    ),
    "[n1:12] Signal: Segmentation fault (11)": (f"{CRASHED} (segmentation fault)", None),
    "[n1:12] Signal: Bus error (7)": (f"{CRASHED} (bus error)", None),
    "[n1:12] Signal: Floating point exception (8)": (f"{CRASHED} (floating point exception)", None),
    "[n1:12] Signal: Illegal instruction (4)": (f"{CRASHED} (illegal instruction)", None),
    "double free or corruption (!prev)": (CORRUPTED, None),
    "free(): invalid pointer": (CORRUPTED, None),
    "free(): double free detected in tcache 2": (CORRUPTED, None),
    "malloc(): unaligned tcache chunk detected": (CORRUPTED, None),
    "malloc_consolidate(): invalid chunk size": (CORRUPTED, None),
    "realloc(): invalid next size": (CORRUPTED, None),
    "*** stack smashing detected ***: terminated": (CORRUPTED, None),
    "terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad shard": (
        f"{NATIVE} (bad shard)",
        None,
    ),
    "terminate called after throwing an instance of 'std::out_of_range'": (NATIVE, None),
    "g1:8:9 [0] NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2 : CUDA error 1": (
        "the NVLink switches do not work (NVLink SHARP)",
        None,
    ),
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB": (MEMORY, None),
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB": (MEMORY, None),
    "Memory access fault by GPU node-4 (Agent handle: 0x5) on address 0x7": (
        "the program accessed GPU memory that is not its own",
        None,
    ),
    "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasGemmEx`": ("a GPU library failed", None),
    "RuntimeError: /te/gemm.cu:4: Unable to find suitable cuBLAS GEMM algorithm": (
        "cuBLAS has no algorithm for a matrix product of the model",
        None,
    ),
    "RuntimeError: CUDA unknown error - this may be due to an environment": ("no GPU is visible to the process", None),
    "RuntimeError: Unable to initialize backend 'tpu': NOT_FOUND: no device": (
        "no accelerator is visible to the process (tpu)",
        None,
    ),
    "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT": (f"{GPU_ERROR} (149: the hardware has an NVLink error)", None),
    "RuntimeError: FlashAttention only supports head dimension at most 256": (
        "no attention kernel supports the model and the settings",
        None,
    ),
    "RuntimeError: No available kernel. Aborting execution.": (
        "no attention kernel supports the model and the settings",
        None,
    ),
    "403 GET https://storage.googleapis.com/b: a@b does not have storage.objects.get access to the object": (
        "the account has no access to a bucket (storage.objects.get)",
        None,
    ),
    "google.api_core.exceptions.NotFound: 404 GET b: The specified bucket does not exist.": (
        "a bucket does not exist",
        None,
    ),
    "botocore.exceptions.NoCredentialsError: Unable to locate credentials": ("the job has no credentials for S3", None),
    "Internal: x.cc:1: NCCL operation ncclAllReduce(a, b) failed: invalid usage: while": (
        "a program used NCCL incorrectly",
        None,
    ),
    "ValueError: RESOURCE_EXHAUSTED: E0100: RuntimeBufferAllocationFailure:": (MEMORY, None),
    "JaxRuntimeError: RESOURCE_EXHAUSTED: CompileTimeHbmOom": (MEMORY, None),
    "JaxRuntimeError: INTERNAL: Accelerator device halted prematurely, perhaps due to a check": (
        "an accelerator halted",
        None,
    ),
    "DistStoreError: Connection reset. This may indicate a possible application crash on rank 2": (DIED, 2),
    "DistNetworkError: failed to recv, got 0 bytes": (DIED, None),
    "E x.cc:9] /job:jax_worker/replica:0/task:37 has been set to ERROR in coordination service: UNAVAILABLE": (
        DIED,
        37,
    ),
    "XlaRuntimeError: UNAVAILABLE: failed to connect to all addresses; last error: refused": (
        "processes could not reach one another",
        None,
    ),
    "DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:19, unhandled cuda error": (
        "a GPU call of NCCL failed",
        None,
    ),
    "[E ProcessGroupNCCL.cpp:8] Observed flight recorder dump signal from another rank via TCPStore.": (
        "a rank waited in vain for the other ranks",
        None,
    ),
    "n1:1:2 [3] NCCL WARN Call to ibv_modify_qp failed with error No data": (
        "the network between the nodes failed",
        None,
    ),
    "/w/run.sh: line 4: 8441 Hangup      python train.py": (
        "the program was started in a terminal or an ssh session that ended",
        None,
    ),
    "The node was low on resource: ephemeral-storage. Threshold quantity: 3": (
        "the node evicted the job, because a resource ran out (ephemeral-storage)",
        None,
    ),
    "RuntimeError: unable to allocate shared memory(shm) for file </torch_123_456>: Success (0)": (
        "the container has too little shared memory",
        None,
    ),
    "RuntimeError: unable to write to file </torch_123_456>: No space left on device (28)": (
        "the container has too little shared memory",
        None,
    ),
    "EntryNotFoundError: 404 Client Error. (Request ID: x)": ("a file of the model is missing", None),
    'Warning  Failed  3s (x4 over 30s)  kubelet  Error: secret "hub-token" not found': (
        "the pod needs a secret that does not exist (hub-token)",
        None,
    ),
    "We had to rate limit your IP (10.0.0.1).": ("the model hub rejects so many requests", None),
    "wandb.errors.errors.UsageError: No API key configured. Use `wandb login` to log in.": (
        "a logger of metrics has no account",
        None,
    ),
    "wandb.errors.errors.CommError: Run initialization has timed out after 9.0 sec.": (LOGGER, None),
    "wandb.errors.errors.CommError: failed to upsert bucket: returned error 403": (LOGGER, None),
    "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/a: offline mode is enabled.": (
        "the job may not use the network, and a file is not in the cache",
        None,
    ),
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: x": (
        "processes run different collectives",
        None,
    ),
    "RuntimeError: NCCL Error 5: invalid usage (run with NCCL_DEBUG=WARN for details)": (
        "a program used NCCL incorrectly",
        None,
    ),
    "[n1:12] Signal: Aborted (6)": ("unknown: a process aborted", None),
    "FileNotFoundError: [Errno 2] No such file or directory: '/d/pile_text_document.idx'": (
        "the dataset is missing",
        None,
    ),
    "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: Mismatched PJRT plugin PJRT API version (1)": (
        MISMATCH,
        None,
    ),
    "RuntimeError: Unable to initialize backend 'cuda': Found cuBLAS version 1, but JAX was built against version 2": (
        MISMATCH,
        None,
    ),
    "E   RuntimeError: Unable to use CUDA because of the following issues with CUDA components:": (MISMATCH, None),
    "/opt/lib/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so: undefined symbol: _ZN2at4_ops5zeros4callE": (
        MISMATCH,
        None,
    ),
    "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory": (MISMATCH, None),
    "/usr/bin/ld: cannot find -lcuda: No such file or directory": (
        "the linker does not find the driver's library, libcuda.so",
        None,
    ),
    "ptxas /tmp/x, line 10; fatal   : Unsupported .version 8.4; current version is '8.1'": (
        "the compiler of GPU code is too old (it does not know PTX 8.4)",
        None,
    ),
    "ERROR: Unexpected result nan on rank 3 at iteration #3 (message='found NaN in local grad norm for bucket #0')": (
        "the gradient became NaN",
        3,
    ),
    "ERROR: Unexpected result nan on rank 3 at iteration #3 (message='found NaN in local forward loss calculation')": (
        "the loss became NaN",
        3,
    ),
    "ValueError: The loss returned in `training_step` is nan.": ("the loss became NaN", None),
    "/a/Indexing.cu:1292: indexSelectLargeIndex: block: [4,0,0], thread: [9,0,0] Assertion `srcIndex < size` failed.": (
        "a check on the GPU failed (device-side assert)",
        None,
    ),
    "[CUDA_ERROR_NOT_PERMITTED] operation not permitted in expression cuMemCreate(&handle, size, &prop, 0)": (
        "the nodes cannot share GPU memory over NVLink (IMEX)",
        None,
    ),
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376.": (
        "a Triton kernel needs more shared memory than a GPU of this type has",
        None,
    ),
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required": (
        MEMORY,
        None,
    ),
    "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space vmem. Used 67M": (
        "a kernel needs more memory within the chip than its limit (vmem)",
        None,
    ),
    "RuntimeError: DataLoader worker (pid 25902) is killed by signal: Segmentation fault. ": (
        "a worker that loads data crashed (segmentation fault)",
        None,
    ),
    "/w/job.sh: /bin/bash^M: bad interpreter: No such file or directory": (
        "a script has the line ends of Windows",
        None,
    ),
    "Lmod has detected the following error: The following module(s) are unknown: ": (
        "the site has no such module",
        None,
    ),
}

HARMLESS = [
    "2025-07-31 20:22:32.9: I stream_executor/cuda/cuda_driver.cc:763] failed to allocate 3M from device: "
    "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "UserWarning: Failed to load image Python extension: '/opt/image.so: undefined symbol: _ZN3c106detail'",
    "out of resource: shared memory, Required: 131072, Hardware limit: 101376. Ignoring this choice.",
    "/src/host/transport/transport.cpp:282: init failed for transport: IBGDA",
    "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  lost",
    "the timeout was set, a run of 3 steps Aborted  by hand before",
    "malloc(): 3 GB, free(): 1 GB",
    "UserWarning: CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: cudnn_status: CUDNN_STATUS_NOT_SUPPORTED (Triggered",
    "g1:8:9 [0] NCCL INFO Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1 "
    "'invalid argument'. Proceeding without NVLS support.",
    "INFO:xla_bridge:Unable to initialize backend 'tpu': INTERNAL: no libtpu",
    "UserWarning: CUDA initialization: CUDA unknown error - this may be due to an environment",
    "W grpc.cc:5] UNAVAILABLE: failed to connect to all addresses; retrying",
    "Killed processes of the run before: 3",
    "the size of '/d/pile_text_document.idx' is 9",
    "ssh: connect to host backup port 22: Connection timed out\nlost connection",
    "ssh: connect to host backup port 22: No route to host\r\nrsync: connection unexpectedly closed",
]


@pytest.mark.parametrize("line", CAUSES, ids=lambda line: line[:30])
def test_a_line_has_its_cause(tmp_path: Path, line: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"step 1\n{line}\n")

    found = diagnose([log])

    assert found is not None
    assert (found.cause, found.rank, found.line) == (*CAUSES[line], 2)


@pytest.mark.parametrize("line", HARMLESS, ids=lambda line: line[:30])
def test_a_line_that_resembles_a_cause_has_none(tmp_path: Path, line: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"step 1\n{line}\nstep 2\n")

    assert diagnose([log]) is None


def test_a_program_before_a_colon_is_no_host(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("python3.12: can't open file '/opt/train.py': [Errno 2] No such file or directory\n")

    found = diagnose([log])

    assert found is not None
    assert found.host is None


@pytest.mark.parametrize(
    "line",
    [
        "ssh: connect to host node044 port 22: No route to host",
        "node044: ssh: connect to host node044 port 22: Connection refused\r",
        "ssh: Could not resolve hostname node044: Name or service not known",
    ],
)
def test_a_node_that_ssh_could_not_reach_is_named(tmp_path: Path, line: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"step 1\n{line}\n")

    found = diagnose([log])

    assert found is not None
    assert (found.cause, found.host) == ("the launcher could not reach a node", "node044")


def test_the_end_of_a_dataset_has_a_remedy(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text('step 1\nTraceback (most recent call last):\n  File "a.py", line 3, in <module>\nStopIteration\n')

    found = last_exception([log])

    assert found is not None
    assert (found.cause, found.origin) == ("a process failed with StopIteration", "user")
    assert "no more samples" in found.remedy
