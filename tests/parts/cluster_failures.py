"""Failures of clusters, containers and libraries: each text follows a public log, in our own words.

The first value after the text is the cause, then the rank and the host.
"""

from __future__ import annotations

from parts.recent_failures import DIED, DOCKER, FRAMES, WAITED, of_rank

CANCELLED = "slurmstepd: error: *** JOB 17 ON n3 CANCELLED AT 2026-03-24T17:04:13"
RCCL = FRAMES + "DistBackendError: NCCL error in: x.cpp:81, unhandled cuda error, NCCL version 2.26.6\n"
CHDIR = "slurmstepd: error: couldn't chdir to `/workspace': No such file or directory: going to /tmp instead\n"
NO_STEP = "srun: error: Unable to create step for job 17: Job/step already completing or completed\n"
OUT_OF_MEMORY = "the accelerator is out of memory"
REJECTED = "the registry rejected the credentials for the image"
NOT_DIVISIBLE = "the parallel degrees or batch sizes do not fit the model or the number of GPUs"
NCCL_VERSIONS = "processes use different versions of NCCL"
CUDA_GRAPH = "the program made a call that a CUDA graph does not allow"
HOOK = "error during container init: error running hook #0: exit status 1, stderr: nvidia-container-cli: "
MODULE = FRAMES + "ModuleNotFoundError: No module named 'dataclasses'\n"
MODULE_MISSING = "a Python module is missing in the job's environment"
STARTING = "".join(f"{rank}: loading the dataset\n" for rank in range(8))
NO_NETWORK = "NCCL could not use the network"
UNHANDLED = FRAMES + "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:9, unhandled system error, NCCL version 2.7.8\n"
OF_UCX = "[1724685304.1] [n1:102320:f]        vfs_fuse.c:281  UCX  ERROR "


def of_node(task: int, error: str, rank: int, host: str) -> str:
    """Return what a torchrun that srun started on a node prints about one of its ranks."""
    report = f"""ChildFailedError:
Root Cause (first observed failure):
[0]:
  time      : 2026-11-27_05:00:00
  host      : {host}
  rank      : {rank} (local_rank: 1)
  exitcode  : 1 (pid: 123)
"""
    lines = "".join(f"{task}: {line}\n" for line in (FRAMES + error + report).splitlines())
    return f"{lines}srun: error: n{task}: task {task}: Exited with exit code 1\n"


FAILED = {
    # srun numbers the tasks that run torchrun, not the ranks
    "rank of a torchrun on each node": (
        "0: starting\n" + of_node(1, "ValueError: 1\n", 9, "n1.x"), "a process failed with ValueError", 9, "n1.x",
    ),
    "rank of a torchrun that does not know its host": (
        of_node(1, "", 9, "localhost"), "unknown: a process exited with code 1", 9, "n1",
    ),
    "signals that ranks report after the end of another": (
        "5: Traceback (most recent call last):\n5:   File \"t.py\", line 1, in <module>\n5: ValueError: 1\n"
        "srun: error: n1: task 5: Exited with exit code 1\n0: [rank: 0] Received SIGTERM: 15\n"
        "1: [rank: 1] Received SIGTERM: 15\n", "a process failed with ValueError", 5, "n1",
    ),
    # elena-lyulina/Megatron-LM-Attention-Benchmark: Slurm starts a script in /tmp, too
    "missing folder before a cancellation": (CHDIR + f"{CANCELLED} ***\n", "the job was cancelled", None, "n3"),
    "missing folder before the time limit": (
        CHDIR + f"{CANCELLED} DUE TO TIME LIMIT ***\n", "the job reached its time limit", None, "n3",
    ),
    "missing folder before an exception": (
        CHDIR + FRAMES + "RuntimeError: bad shard\n", "a process failed with RuntimeError", None, None,
    ),
    "missing folder": (
        CHDIR + "srun: error: n3: task 0: Exited with exit code 2\n", "the job's directory does not exist on a node",
        0, "n3",
    ),
    # the script of the same jobs calls wandb on the node, before srun starts the ranks with labels
    "module of a script before the time limit": (
        f"{MODULE}{STARTING}{CANCELLED} DUE TO TIME LIMIT ***\n", "the job reached its time limit", None, "n3",
    ),
    "module of a script before an exception": (
        MODULE + STARTING + "".join(f"2: {line}\n" for line in (FRAMES + "ValueError: no more data").splitlines()),
        "a process failed with ValueError", 2, None,
    ),
    "module of a script": (MODULE + STARTING, MODULE_MISSING, None, None),
    "module of a rank before the time limit": (
        "".join(f"3: {line}\n" for line in MODULE.splitlines()) + f"{STARTING}{CANCELLED} DUE TO TIME LIMIT ***\n",
        MODULE_MISSING, 3, None,
    ),
    "step of a cancelled job": (NO_STEP + f"{CANCELLED} ***\n", "the job was cancelled", None, "n3"),
    "step of a job that ended": (NO_STEP, "unknown: the job ended before a step could start", None, None),
    "time limit of salloc": (
        "salloc: Job 17 has exceeded its time limit and its allocation has been revoked.\nsrun: error: n3: task 0: "
        "Killed\n", "the job reached its time limit", 0, "n3",
    ),
    # eth-cscs/cscs-docs
    "srun in a container": (
        "srun: error: Couldn't load specified plugin name for switch/hpe_slingshot: Dlopen of plugin file failed\n"
        "srun: fatal: Can't find plugin for switch/hpe_slingshot\n",
        "srun could not load its plugin switch/hpe_slingshot", None, None,
    ),
    "program of srun": (
        "srun: fatal: Can not execute train.sh\n",
        "a program that the job starts cannot be executed (train.sh)", None, None,
    ),
    # shifang99/Megatron-LM_core_v0.7.0_trace
    "inotify before an exception": (
        f"{OF_UCX}inotify_add_watch(/tmp) failed: No space left on device\n{FRAMES}KeyError: 1\n",
        "a process failed with KeyError", None, None,
    ),
    "other user of all inotify instances": (
        f"{OF_UCX}inotify_init() failed: Too many open files\n{FRAMES}KeyError: 1\n", "a process failed with KeyError",
        None, None,
    ),
    # SchedMD/slurm, slurmstepd/req.c: a node that did not fail prints the message
    "failed node that no message names": (
        "slurmstepd-n3: error: *** JOB 17 ON n3 CANCELLED AT 2026-03-24T17:04:13 DUE TO NODE FAILURE, SEE LOG ***\n",
        "a node of the job failed", None, None,
    ),
    "failed node that srun names": (
        f"srun: error: Node failure on n7\n{CANCELLED} DUE TO NODE FAILURE, SEE LOG ***\n", "a node of the job failed",
        None, "n7",
    ),
    # open-mpi, chapel and the documentation of Frontier: srun cancels the step after a process that MPI ended
    "call of Open MPI": (
        "[n53:90693] *** An error occurred in MPI_Send\n[n53:90693] *** MPI_ERRORS_ARE_FATAL (processes will abort)\n"
        "slurmstepd: error: *** STEP 348.0 ON n53 CANCELLED AT 2026-08-22T09:51:30 ***\nsrun: error: n56: task 1: "
        "Killed\n", "an MPI call failed (MPI_Send)", None, "n53",
    ),
    # NVIDIA-NeMo/Megatron-Bridge 665: Open MPI does not know its host before it has started
    "start of Open MPI": (
        "*** An error occurred in MPI_Init_thread\n*** on a NULL communicator\n*** MPI_ERRORS_ARE_FATAL (processes in "
        "this communicator will now abort)\n", "an MPI call failed (MPI_Init_thread)", None, None,
    ),
    "wrapped report of Open MPI": (
        "mpirun noticed that process rank 2 with PID 0 on node\ngpu7.x.edu exited \non signal 6 (Aborted).\n",
        "unknown: a process ended with signal 6", 2, "gpu7.x.edu",
    ),
    "call of MPICH": (
        "MPICH ERROR [Rank 3] [job id 7] [Mon Sep 23 2026] [n7] - Abort(875) (rank 3 in comm 0): Fatal error in "
        "PMPI_Alltoallv: Other MPI error, error stack:\n", "an MPI call failed (PMPI_Alltoallv)", 3, None,
    ),
    "versions of NCCL in its last error": (
        of_rank(0, "DistBackendError: NCCL error in: x.cpp:94, invalid usage, NCCL version 2.27.5\nLast error:\n"
                "Mismatched NCCL version detected : rank 1 version 22703 rank 0 version 22705\n"),
        NCCL_VERSIONS, 0, None,
    ),
    "versions of NCCL in an exception": (
        FRAMES + "RuntimeError: Mismatched NCCL version detected : rank 1 version 22705 rank 0 version 22703\n",
        NCCL_VERSIONS, None, None,
    ),
    # NVIDIA/nccl 653
    "algorithm of NCCL": (
        "201: :41367:41367 [1] enqueue.cc:422 NCCL WARN Error : no algorithm/protocol available\n",
        "NCCL has no algorithm for a collective", 201, None,
    ),
    # NVIDIA-NeMo/Megatron-Bridge 2012 and 650
    "HybridEP": (
        "HYBRID-EP ALLGATHER TIMEOUT:SM 13 [0]:expecting 5792 got 5791\n" * 2,
        "the exchange of tokens between experts timed out (HybridEP)", None, None,
    ),
    "multicast of an overlap": (
        of_rank(0, "AssertionError: CUDA device, driver and/or toolkit version does not support comm+GEMM overlap with "
                "CUDA Multicast. Launch app with UB_SKIPMC=1.\n"),
        "the GPUs of a node do not support multicast, which the overlap of communication uses", 0, None,
    ),
    "store of PyTorch": (
        FRAMES + "torch.distributed.DistStoreError: wait timeout after 900000ms, keys: /torchelastic/role_info/0\n",
        WAITED, None, None,
    ),
    "name of the first node": (
        FRAMES + "torch.distributed.DistNetworkError: The IPv6 network addresses of (trainer-0, 29500) cannot be "
        "retrieved (gai error: -2 - Name or service not known).\n", "a host name cannot be resolved (trainer-0)",
        None, None,
    ),
    "agent of XLA": (
        "E0101 agent.cc:700] Coordination agent is set to ERROR: UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 "
        "heartbeat timeout.\n", DIED, 3, None,
    ),
    "allocator of CUDA": (
        of_rank(2, "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"),
        OUT_OF_MEMORY, 2, None,
    ),
    "threads of OpenMP": (
        "OMP: Error #34: System unable to allocate necessary resources for OMP thread:\nOMP: System error #11: "
        "Resource temporarily unavailable\n", "a user has too many processes or threads", None, None,
    ),
    "checkpoint that cannot be written": (
        FRAMES + "RuntimeError: PytorchStreamWriter failed writing file data/37: file write failed\n",
        "a checkpoint could not be written or read", None, None,
    ),
    "tokenizer of a newer library": (
        FRAMES + "Exception: data did not match any variant of untagged enum ModelWrapper at line 12 column 3\n",
        "the installed tokenizers library does not know the tokenizer's format (ModelWrapper)", None, None,
    ),
    "experts": (
        FRAMES + "AssertionError: Number of experts should be divisible by expert model parallel size\n",
        NOT_DIVISIBLE, None, None,
    ),
    "sharding": (
        FRAMES + "ValueError: One of pjit arguments was given the sharding of NamedSharding(x), so the global size of "
        "its dimension 0 should be divisible by 8, but it is equal to 4\n", NOT_DIVISIBLE, None, None,
    ),
    # Transformer Engine, Triton and PyTorch
    "sizes of FP8": (
        of_rank(1, "AssertionError: FP8 execution requires 2D input matrices with height divisible by 8 and width "
                "divisible by 16, but got tensor with dims=[4095, 4096]\n"),
        "a size is not divisible as FP8 requires", 1, None,
    ),
    "sizes of MXFP8": (
        of_rank(5, "RuntimeError: /opt/quantizer.cpp:1114 in function get_scale_shape: Assertion failed: last_dim % 32 "
                "== 0. MXFP8 requires tensor dims that are divisible by 32 (got shape=(562,4096))\n"),
        "a size is not divisible as FP8 requires", 5, None,
    ),
    "FP8 of Triton": (
        FRAMES + "ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ()\n",
        "the GPU does not support this precision (FP8)", None, None,
    ),
    "old GPU": (
        FRAMES + "RuntimeError: Found Tesla V100 which is too old to be supported by the triton GPU compiler\n",
        "the image was not built for this GPU type", None, None,
    ),
    "module of XLA": (
        FRAMES + "XlaRuntimeError: INTERNAL: Failed to load PTX text as a module: CUDA_ERROR_INVALID_IMAGE: device "
        "kernel image is invalid\n", "the image was not built for this GPU type", None, None,
    ),
    "call that XLA does not know": (
        FRAMES + "jax.errors.JaxRuntimeError: NOT_FOUND: No FFI handler registered for te_gemm on a platform CUDA\n",
        "a library of the image does not match", None, None,
    ),
    "memory of a TPU": (
        FRAMES + "ValueError: Allocation (size=2147) would exceed memory (size=1717) :: #allocation7 ["
        "space=hbm]\n", OUT_OF_MEMORY, None, None,
    ),
    "memory of a kernel": (
        FRAMES + "JaxRuntimeError: RESOURCE_EXHAUSTED: Allocation (size=9) would exceed memory (size=6) [space=vmem]\n",
        "a process failed with JaxRuntimeError", None, None,
    ),
    "capture": (
        of_rank(9, "RuntimeError: CUDA error: operation failed due to a previous error during capture\n"),
        CUDA_GRAPH, 9, None,
    ),
    "stream of a capture": (
        of_rank(9, "AcceleratorError: CUDA error: operation would make the legacy stream depend on a capturing\n"),
        CUDA_GRAPH, 9, None,
    ),
    "multicast before the fabric": (
        FRAMES + "RuntimeError: CUDA driver error: system not yet initialized\n", "the GPUs' fabric is not ready",
        None, None,
    ),
    # awslabs/awsome-distributed-ai 647
    "memory that EFA may not lock": (
        "Libfabric EFA provider has encountered an internal error:\n\nLibfabric error: (-12) Cannot allocate memory\n"
        "EFA internal error: (4112) Failure to post internal receive buffers\n\nYour application will now abort().\n",
        "the processes may not lock enough memory for the network", None, None,
    ),
    # NVIDIA/nccl 563, aws/aws-ofi-nccl 44 and 715
    "memory that EFA may not register": (
        "n1:149:298 [5] register_mr_buffers:465 NCCL WARN NET/OFI Unable to register memory (type = 1) for device 0. "
        f"RC: 12, Error: Cannot allocate memory\n{UNHANDLED}", NO_NETWORK, None, "n1",
    ),
    "endpoint of EFA": (
        "[1,3]<stdout>:n1:153:691 [3] create_nccl_ofi_component:496 NCCL WARN NET/OFI Couldn't enable endpoint. RC: "
        f"-12, ERROR: Cannot allocate memory\n{UNHANDLED}", NO_NETWORK, 3, "n1",
    ),
    "sockets instead of EFA": (
        "libfabric:17:99::efa:cq:efa_cq_ibv_cq_ex_open_with_ibv_create_cq_ex():92<warn> Unable to create extended CQ: "
        "Cannot allocate memory\nn1:17:18 [5] nccl_ofi_ofiutils_init_connection:274 NCCL WARN NET/OFI Couldn't open "
        f"CQ. RC: -12, ERROR: Cannot allocate memory\nn1:17:18 [5] NCCL INFO Using network Socket\n{STARTING}{FRAMES}"
        "KeyError: 1\n", "a process failed with KeyError", None, None,
    ),
    # GPUs of AMD: RCCL, hipBLAS and the kernel driver, in the words of their sources; ROCm/TransformerEngine
    "memory of HIP": (of_rank(3, "RuntimeError: HIP error: out of memory\n"), OUT_OF_MEMORY, 3, None),
    "memory of RCCL": (
        "n1:7:9 [0] allocator.cc:76 NCCL WARN HIP failure 'out of memory'\n" + RCCL, OUT_OF_MEMORY, None, "n1",
    ),
    "call of HIP in RCCL": (
        f"n1:7:9 [0] p2p_tmp.cc:372 NCCL WARN HIP failure 'invalid argument'\n{RCCL}",
        "a GPU call of NCCL failed (invalid argument)", None, "n1",
    ),
    "last error of RCCL": (
        f"{RCCL}ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nHIP failure 'invalid argument'\n",
        "a GPU call of NCCL failed (invalid argument)", None, None,
    ),
    "workspace of hipBLAS": (
        of_rank(0, "RuntimeError: CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`\n"),
        "hipBLAS could not allocate its workspace", 0, None,
    ),
    "call of hipBLAS": (
        of_rank(0, "RuntimeError: CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasGemmEx(handle)`\n"),
        "a GPU library failed", 0, None,
    ),
    "algorithm of hipBLASLt": (
        of_rank(0, "RuntimeError: rocm_gemm.cu:9 in function hipblaslt_gemm: Unable to find any suitable algorithms\n"),
        "a GPU library has no algorithm for a matrix product of the model", 0, None,
    ),
    "memory of a GPU of AMD": (
        "[138.9] amdgpu 0000:c6:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block\n",
        "a GPU has a hardware error (uncorrectable)", None, None,
    ),
    # NVIDIA/nccl 573 and pytorch 40273, the user guide of NCCL
    "devices that NCCL cannot read": (
        "n1:430:2237 [0] graph/xml.cc:332 NCCL WARN Could not find real path of /sys/class/pci_bus/0000:1e/../../"
        f"0000:1e:00.0\n{UNHANDLED}", "NCCL cannot read which devices the node has", None, "n1",
    ),
    "shared memory that systemd removed": (
        "n1:4:8 [0] include/shm.h:48 NCCL WARN unlink shared memory /dev/shm/nccl-d5r failed, error: No such file or "
        f"directory\n{UNHANDLED}", "the node removed the shared memory of NCCL", None, "n1",
    ),
    # NVIDIA/Megatron-LM and TensorRT-LLM: the heartbeat monitor of PyTorch since 2.6
    "watchdog of PyTorch": (
        "[rank6]:[E825 20:54:10.1 ProcessGroupNCCL.cpp:1737] [PG ID 0 Rank 6] ProcessGroupNCCL's watchdog got stuck "
        "for 480 seconds without making progress in monitoring enqueued collectives.\n", WAITED, 6, None,
    ),
    "store that closed": (
        of_rank(3, "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed.\n"),
        DIED, 3, None,
    ),
    "busy GPUs": (
        FRAMES + "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n",
        "a GPU is held by another process", None, None,
    ),
    # vllm-project/vllm and ray-project/ray
    "crash in Ray": (
        "(RayWorker pid=4823, ip=10.2.6.3) *** SIGSEGV received at time=1739339449 on cpu 57 ***\n(RayWorker pid=4823, "
        "ip=10.2.6.3) PC: @ 0x7ee184049b8a (unknown) addProxyOpIfNeeded()\n",
        "a process crashed (segmentation fault)", None, "10.2.6.3",
    ),
    # NVIDIA-NeMo/Megatron-Bridge 3343
    "HybridEP without InfiniBand": (
        "[n16:18:0:18] Caught signal 4 (Illegal instruction: illegal operand)\n==== backtrace (tid:18) ====\n"
        " 0  /opt/hpcx/ucx/lib/libucs.so.0(ucs_handle_error+0x2e4) [0x15551d4a3774]\n"
        " 4  /usr/lib/python3/dist-packages/hybrid_ep_cpp.cpython-312-x86_64-linux-gnu.so(+0x204c2) [0x15551d4]\n"
        "srun: error: n13: tasks 0-7: Exited with exit code 132\nsrun: error: n16: tasks 8-15: Exited with exit code "
        "132\n", "a process crashed in HybridEP", None, None,
    ),
    # flags of XLA, in public notes on TPUs and GPUs
    "flag of XLA": (
        "2024-05-01 10:00:00.1: F external/xla/xla/parse_flags_from_env.cc:226] Unknown flag in XLA_FLAGS: --xla_a=1\n"
        "Fatal Python error: Aborted\n", "XLA does not know a flag (--xla_a=1)", None, None,
    ),
    "flags of XLA": (
        "F0621 23:39:05.9 124 parse_flags_from_env.cc:234] Unknown flags in XLA_FLAGS: --xla_a=true --xla_b=1 \n",
        "XLA does not know a flag (--xla_a=true --xla_b=1)", None, None,
    ),
    "flag of libtpu": (
        "ERROR: Unknown command line flag 'xla_tpu_combiner'\nERROR: Unknown command line flag 'xla_tpu_gather'\n",
        "XLA does not know a flag ('xla_tpu_combiner')", None, None,
    ),
    # fatal lines of XLA: ColmTalbot/gwpopulation and jax-ml/jax
    "threads of XLA": (
        "2025-03-18 23:02:04.1: F external/xla/xla/tsl/platform/default/env.cc:76] Check failed: ret == 0 (11 vs. 0)"
        "Thread tf_foreach creation via pthread_create() failed.\nAborted (core dumped)\n",
        "a user has too many processes or threads", None, None,
    ),
    "check of XLA": (
        "2023-07-17 19:51:05.2: F external/xla/xla/hlo/ir/hlo_sharding.cc:961] Check failed: !IsManual() \n"
        "Aborted (core dumped)\n", "a check in native code failed (!IsManual())", None, None,
    ),
    "fatal line of XLA": (
        "2023-07-17 19:51:05.2: F external/xla/xla/service/gpu/x.cc:9] Invalid layout of a tensor\n",
        "unknown: a process failed", None, None,
    ),
    # TPUs: marin-community/marin 1534, pytorch/xla 6048 and 7138, and the errors of XLA at openxla.org
    "halted chip": (
        "E0827 23:43:41.2 394 synchronous_driver.cc:820] [/dev/accel0 tpu1013:pe1:0] !!!! FATAL ERROR !!!! for "
        "[/dev/accel0 tpu1013:pe1:0] , fatal_error: true\n", "an accelerator halted", None, None,
    ),
    "crash on a TPU": (
        "*** SIGSEGV (@(nil)), see go/stacktraces#s15 received by PID 160 (TID 34) on cpu 100; stack trace: ***\n",
        "a process crashed (segmentation fault)", None, None,
    ),
    "process that aborted on a TPU": (
        "*** SIGABRT received by PID 9361 (TID 9361) on cpu 40 from PID 9361; stack trace: ***\n",
        "unknown: a process aborted", None, None,
    ),
    "process that was terminated on a TPU": (
        "https://symbolize.example/r/?trace=7e07*** SIGTERM received by PID 18 (TID 18) on cpu 93 from PID 1; stack "
        "trace: ***\n", "unknown: a process was terminated", None, None,
    ),
    "stack of a kernel": (
        FRAMES + "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory "
        "in memory space vmem while allocating on stack for %splash_mha_fwd. Scoped allocation with size 19.85M and "
        "limit 16.00M exceeded scoped vmem limit by 3.85M.\n",
        "a kernel needs more memory within the chip than its limit (vmem)", None, None,
    ),
    # public notes of users: a container without the socket of munge
    "srun without munge": (
        'srun: error: If munged is up, restart with --num-threads=10\nsrun: error: Munge encode failed: Failed to '
        'access "/run/munge/munge.socket.2": No such file or directory\n',
        "Slurm's authentication (munge) failed", None, None,
    ),
    # Docker and Kubernetes
    "password of a registry": (
        'docker: Error response from daemon: Head "https://registry-1.docker.io/v2/a/b/manifests/1": unauthorized: '
        "incorrect username or password.\n", REJECTED, None, None,
    ),
    "page of a registry": (
        'docker: Error response from daemon: Head "https://nvcr.io/v2/a/manifests/1": unauthorized: <html>\n', REJECTED,
        None, None,
    ),
    "driver of a container": (
        f"{DOCKER}{HOOK}initialization error: nvml error: driver/library version mismatch: unknown.\n",
        "the GPU driver was replaced while it was in use", None, None,
    ),
    "GPU that requires a reset": (
        f"{DOCKER}{HOOK}detection error: nvml error: gpu requires reset\n",
        "a GPU has an error, so that containers get no GPU of the node (gpu requires reset)", None, None,
    ),
    "GPU with an error before a hook": (
        "slurmstepd: error: pyxis:     nvidia-container-cli: detection error: nvml error: unknown error\nslurmstepd: "
        "error: pyxis:     [ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1\n",
        "a GPU has an error, so that containers get no GPU of the node (unknown error)", None, None,
    ),
    "library of another driver": (
        f"{DOCKER}{HOOK}detection error: open failed: /usr/lib/libnvidia-tls.so.570: no such file or directory\n",
        "the GPU driver cannot be added to the container", None, None,
    ),
    "image that cannot be pulled": (
        "Warning  Failed  0s  kubelet  Error: ErrImagePull\n", "the container image could not be pulled", None, None,
    ),
    "pod that the node rejects": (
        "Reason:  UnexpectedAdmissionError\nMessage: Pod was rejected: Allocate failed due to no healthy devices "
        "present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected\n",
        "the node rejected the pod (Allocate failed due to no healthy devices present)", None, None,
    ),
}  # fmt: skip

HARMLESS = [
    "amdgpu 0000:c3:00.0: amdgpu: no uncorrectable hardware errors detected in umc block\n",
    "amdgpu 0000:0b:00.0: 1048560 uncorrectable hardware errors detected in umc block\n",
    f"{OF_UCX}inotify_add_watch(/tmp) failed: No space left on device\n",
    f"{OF_UCX}inotify_init() failed: Too many open files\n",
    "[W socket.cpp:601] [c10d] The IPv6 network addresses of (ros, 41711) cannot be retrieved (gai error: -2 - Name or "
    "service not known).\n",
    "n1:1:2 [0] NCCL INFO HYBRID-EP is on\n",
    "sizes that are not divisible by the tensor parallel size are padded\n",
]
"""Messages of healthy runs that resemble those of failures."""
