"""Logs of failures of programs of 2025 and 2026: each text follows a public report, in our own words.

The first value after the text is the cause, then the rank and the host.
"""

from __future__ import annotations

FRAMES = 'Traceback (most recent call last):\n  File "/opt/train.py", line 7, in <module>\n    main()\n'
STEPS = "".join(
    f" iteration {step:8}/     900 | elapsed time per iteration (ms): 1617.2 | lm loss: 7.5E+00 |\n" for step in (1, 2)
)
XID = "kernel: NVRM: Xid (PCI:0000:dc:00): "
GPU_ERROR = "the driver reports a GPU error"
NVLINK = f"{GPU_ERROR} (149: the hardware has an NVLink error)"
HUB = "huggingface_hub.errors.HfHubHTTPError: {} for url 'https://huggingface.co/api/models/a/b' (Request ID: Root=1)\n"
DOCKER = "docker: Error response from daemon: failed to create task for container: "
WAITED = "a rank waited in vain for the other ranks"
DIED = "another process of the run died"
DEGREES = "the parallel degrees do not fit each other"
DEEPEP = "the exchange of tokens between experts timed out (DeepEP)"
MEGASCALE = "E0801 10:00:01.0 9 x.cc:1] Megascale detects a hang that is likely caused by "


def of_rank(rank: int, error: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in (FRAMES + error).splitlines())


def timed(time: str, text: str) -> str:
    return "".join(f"{time}{line}\n" for line in text.splitlines())


ROOT_CAUSE = (
    "Root Cause (first observed failure):\n[0]:\n  time      : 2026-09-17_13:40:05\n  host      : w0\n"
    "  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 229)\n  error_file: <N/A>\n"
)
NCCL_ERROR = of_rank(
    3, "torch.distributed.DistBackendError: NCCL error in: x.cpp:94, unhandled cuda error, NCCL version 2.27.5\n"
    "ncclUnhandledCudaError: Call to CUDA function failed.\n",
)  # fmt: skip

FAILED = {
    # the driver's kernel log: docs.nvidia.com/deploy/xid-errors
    "channel removed after an error": (
        f"{XID}45, pid=7, name=python3, Ch 00000001 caused by previous Xid 149\n{XID}154, GPU recovery action\n",
        NVLINK, None, None,
    ),
    "fatal NVLink error after others": (
        f"{XID}145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2)\n{XID}121, C2C Link corrected\n{XID}163, PSHC\n"
        f"{XID}149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6)\n", NVLINK, None, None,
    ),
    "hung channel": (
        f"{XID}109, pid=7, name=pt_main_thread, Ch 00000008, errorString CTX SWITCH TIMEOUT\n",
        f"{GPU_ERROR} (109: the program's channel hung at a context switch)", None, None,
    ),
    "corrected error before another failure": (
        f"{XID}63, pid=7, Row Remapper: New row marked for remapping\n" + of_rank(2, "ValueError: bad shard"),
        "a process failed with ValueError", 2, None,
    ),
    # NVLink across nodes
    "IMEX": (
        "gb1:1:1 [0] NCCL WARN MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX "
        "channel configuration.\n" + NCCL_ERROR, "the nodes cannot share GPU memory over NVLink (IMEX)", None, "gb1",
    ),
    "NVLink SHARP": (
        "n2:4:4 [3] transport/nvls.cc:345 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2 : "
        "CUDA error 2 'out of memory'.\n" + NCCL_ERROR,
        "the NVLink switches do not work (NVLink SHARP)", None, "n2",
    ),
    "fabric": (
        "gpu: Test CUDA failure common.cu:1030 'system not yet initialized'\n", "the GPUs' fabric is not ready",
        None, None,
    ),
    # NVIDIA/nccl 1788, 1029
    "multicast": (
        "node004:7:7 [1] transport/nvls.cc:254 NCCL WARN Cuda failure 401 'the operation cannot be performed in the "
        "present state'\n" + NCCL_ERROR,
        "a GPU call of NCCL failed (the operation cannot be performed in the present state)", None, "node004",
    ),
    "shared GPU": (
        "n1:1:2 [0] init.cc:1124 NCCL WARN Multiple Ranks are using the same GPU/Partition. Set X=1\n",
        "two processes use the same GPU", None, "n1",
    ),
    "versions of NCCL": (
        "n1:1:2 [0] init.cc:9 NCCL WARN Mismatched NCCL version detected : rank 0 version 22703 rank 8 version 22809\n"
        + NCCL_ERROR, "processes use different versions of NCCL", None, "n1",
    ),
    "port that went down": (
        "n1:1:2 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : mlx5_3:1 Got non-fatal async event: port error(10)\n"
        + NCCL_ERROR, "a port of the network failed (mlx5_3:1)", None, "n1",
    ),
    "NVSHMEM": (
        "/build/src/modules/transport/ibgda/ibgda.cpp:2966: non-zero status: 7 create DCT share err.\n",
        "NVSHMEM could not use the network (ibgda)", None, None,
    ),
    # NVIDIA-NeMo/Megatron-Bridge 5067, deepseek-ai/DeepEP 570
    "expert exchange": (of_rank(6, "RuntimeError: DeepEP error: timeout (dispatch CPU)"), DEEPEP, 6, None),
    "barrier of experts": ("DeepEP timeout check failed: rank = 6, thread = 0, value = 0)\n", DEEPEP, None, None),
    # deepseek-ai/DeepEP 270 and 274, NVIDIA-NeMo/Automodel 3906, NVIDIA-NeMo/Megatron-Bridge 2012
    "kernel of experts that timed out": (
        "DeepEP timeout check failed: rank = 6, thread = 0, value = 0)\n"
        + of_rank(6, "torch.AcceleratorError: CUDA error: unspecified launch failure"), DEEPEP, None, None,
    ),
    "sender of experts": (
        "DeepEP RDMA sender coordinator timeout, channel: 4, IB: 0, nvl 4, dst IB: 0, tail: 9\n", DEEPEP, None, None,
    ),
    "kernel of HybridEP that timed out": (
        "HYBRID-EP ALLGATHER TIMEOUT:SM 13 [0]:expecting 5792 got 5791\n"
        + of_rank(6, "torch.AcceleratorError: CUDA error: unspecified launch failure"),
        "the exchange of tokens between experts timed out (HybridEP)", None, None,
    ),
    "illegal access after a timeout": (
        of_rank(6, "RuntimeError: DeepEP error: timeout (dispatch CPU)")
        + of_rank(9, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"), DEEPEP, 6, None,
    ),
    "illegal access before a timeout": (
        of_rank(9, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered")
        + of_rank(6, "RuntimeError: DeepEP error: timeout (dispatch CPU)"),
        "the program accessed GPU memory that is not its own", 9, None,
    ),
    # llm-d/llm-d 191
    "port of NCCL": (
        "n2:311:405 [0] transport/net_ib.cc:199 NCCL WARN NET/IB : mlx5_32:1 Got async error event: port error\n"
        + of_rank(1, "NCCL error: remote process exited or there was a network error"),
        "a port of the network failed (port error)", None, "n2",
    ),
    # NVIDIA/Megatron-LM 5768 and google-deepmind/mujoco_warp 425
    "experts without a number": (
        of_rank(0, "ValueError: num_moe_experts must be non None to use expert-parallel."),
        "the parallel degrees do not fit the model", 0, None,
    ),
    "sequences without tensors": (
        of_rank(0, "ValueError: Cannot use sequence parallelism without tensor parallelism"), DEGREES, 0, None,
    ),
    "sequences without tensors, older": (
        of_rank(0, "ValueError: Can not use sequence paralllelism without tensor parallelism"), DEGREES, 0, None,
    ),
    "interleaved stages": (
        of_rank(0, "RuntimeError: pipeline-model-parallel size should be greater than 1 with interleaved schedule"),
        DEGREES, 0, None,
    ),
    "capture in XLA": (
        FRAMES + "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA error: Failed to end stream capture: "
        "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: operation failed due to a previous error during capture\n",
        "the program made a call that a CUDA graph does not allow", None, None,
    ),
    # Ray
    "worker of Ray": (
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker PID: 7\n"
        + FRAMES + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n",
        "unknown: a process of the run died", None, None,
    ),
    "error in a worker of Ray": (
        "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, ray::A()\n"
        '  File "/opt/worker.py", line 178, in __init__\n    load()\nValueError: unknown model type\n',
        "a process failed with ValueError", None, None,
    ),
    "memory of a node of Ray": (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
        "the host is out of memory", None, None,
    ),
    # XLA
    "coordination service": (
        "[rank3] WatchTasksAsync failed for task 3: UNAVAILABLE: failed to connect to all addresses\n", DIED, 3, None,
    ),
    "check of XLA": (
        "F0912 11:59:01.941641  741969 shape_tree.cc:54] Check failed: id >= 0 (-1 vs. 0)\n*** Check failure stack "
        "trace: ***\n    @     0x7f0e2365c1d4  absl::Flush()\nAborted (core dumped)\n",
        "a check in native code failed (id >= 0 (-1 vs. 0))", None, None,
    ),
    # huggingface_hub 1, with httpx
    "requests": (HUB.format("Client error '429 Too Many Requests'"), "the model hub rejects so many requests",
                 None, None),
    "login": (HUB.format("Client error '401 Unauthorized'"), "the model hub rejected the token", None, None),
    "access": (HUB.format("Client error '403 Forbidden'"), "the account has no access to the model's files",
               None, None),
    "server": (HUB.format("Server error '503 Service Unavailable'"), "the model hub failed", None, None),
    # huggingface/xet-core 444
    "Xet": (
        of_rank(0, "RuntimeError: Data processing error: CAS service error : Request failed after 5 retries"),
        "a download from the model hub failed", 0, None,
    ),
    # containers
    "CDI": (
        DOCKER + "error modifying OCI spec: unresolvable CDI devices nvidia.com/gpu=all\n",
        "the container engine does not know the GPUs of the node", None, None,
    ),
    "hook in the mode cdi": (
        DOCKER + "error running prestart hook #0: Using requested mode 'cdi'\ninvoking the NVIDIA Container Runtime "
        "Hook directly is not supported.\n", "the container engine has no GPU runtime", None, None,
    ),
    # NVIDIA/enroot 249
    "named container": (
        'slurmstepd: error: pyxis: error: a container with name "a" does not exist, and --container-image is not set\n'
        "srun: error: node07: task 0: Exited with exit code 1\n",
        "the named container does not exist on a node", 0, "node07",
    ),
    # other accelerators
    "illegal access of HIP": (
        of_rank(3, "torch.AcceleratorError: HIP error: an illegal memory access was encountered"),
        "the program accessed GPU memory that is not its own", 3, None,
    ),
    "queue of ROCr": (
        ":0:rocdevice.cpp:3586: Callback: Queue 0x7f78 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An operation "
        "resulted in a hardware exception. code: 0x1016\nAborted (core dumped)\n",
        "a GPU or its driver failed (HSA_STATUS_ERROR_EXCEPTION: the program raised an exception)", None, None,
    ),
    "hang of a GPU of AMD": (
        "HW Exception by GPU node-3 (Agent handle: 0x55d) reason :GPU Hang\n", "a GPU or its driver failed", None, None,
    ),
    "driver of AMD": (
        "[138.9] amdgpu 0000:1c:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n",
        "a GPU has a hardware error (uncorrectable)", None, None,
    ),
    "compiler of Gaudi": (
        of_rank(6, "RuntimeError: [Rank:6] FATAL ERROR :: MODULE:PT_BRIDGE Exception in Launch thread...\nCheck "
                "$HABANA_LOGS/ for detailsGraph compile failed. synStatus=synStatus 26 [Generic failure]."),
        "the compiler of the accelerator failed", 6, None,
    ),
    "memory of Gaudi": (
        "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::939524096 (896)MB\n",
        "the accelerator is out of memory", None, None,
    ),
    "timeout of HCCL": (
        of_rank(1, "RuntimeError: OPS function error: HcclAllreduce, error code is 6\nEI0006: [PID: 7] Getting socket "
                "times out."), WAITED, 1, None,
    ),
    "process before, on an NPU": (
        "RuntimeError: [ERROR] HCCL error in: ProcessGroupHCCL.cpp:64\nEJ0001: 2024-05-21 Failed to initialize the "
        "HCCP process.\n", "an accelerator is held by another process", None, None,
    ),
    # Python and PyTorch
    "exception group": (
        "[rank2]:   + Exception Group Traceback (most recent call last):\n"
        '[rank2]:   |   File "/opt/train.py", line 7, in <module>\n[rank2]:   |     main()\n'
        "[rank2]:   | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "[rank2]:   +-+---------------- 1 ----------------\n"
        "[rank2]:     | Traceback (most recent call last):\n"
        '[rank2]:     |   File "/opt/data.py", line 90, in load\n[rank2]:     |     raise ValueError("no tokens")\n'
        "[rank2]:     | ValueError: no tokens\n[rank2]:     +------------------------------------\n",
        "a process failed with ValueError", 2, None,
    ),
    "error in a spawned process": (
        FRAMES + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 5 terminated with the following "
        'error:\nTraceback (most recent call last):\n  File "/opt/spawn.py", line 90, in _wrap\n    fn()\n'
        "ValueError: bad size\n", "a process failed with ValueError", None, None,
    ),
    "spawned process": (
        FRAMES + "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL\n",
        "unknown: a process ended with signal SIGKILL", None, None,
    ),
    "descriptors": (FRAMES + "RuntimeError: received 0 items of ancdata\n", "a process had too many files open",
                    None, None),
    "launcher of Open MPI 5": (
        "prterun noticed that process rank 2 with PID 1617008 on node cpu155 exited on\nsignal 4 (Illegal instruction)."
        "\n", "unknown: a process ended with signal 4", 2, "cpu155",
    ),
    "terminal of torchrun": (
        "W0616 00:37:22.830000 401 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGHUP death "
        "signal, shutting down workers\n",
        "unknown: a process received signal SIGHUP (its terminal or ssh session ended)", None, None,
    ),
    "heartbeats of ranks": (
        "[WARNING] [RankMonitorServer:34] Did not get subsequent heartbeat. Waited 171.92 seconds.\n", WAITED, 34, None,
    ),
    "compiler without the GPU": (
        of_rank(6, "RuntimeError: Internal Triton PTX codegen error:\nptxas fatal   : Value 'sm_103a' is not defined "
                "for option 'gpu-name'"),
        "the image's compiler for GPU code does not know this GPU type (sm_103a)", 6, None,
    ),
    "configuration of pydantic": (
        FRAMES + "pydantic_core._pydantic_core.ValidationError: 2 validation errors for MaxTextConfig\ndataset_path\n  "
        "Input should be a valid string\n",
        "a value of the configuration is missing or invalid (MaxTextConfig)", None, None,
    ),
    "ncclras": (
        "#0-0 (b339) INCOMPLETE\n  Missing communicator data from 1 rank\n  Rank 1 -- GPU 0 managed by process 6 on "
        "node n13\n", DIED, 1, "n13",
    ),
    "libfabric": (
        "n1:1:2 [7] create_nccl_ofi_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument"
        "\n", "NCCL could not use the network", None, "n1",
    ),
    "tests of NCCL": (
        "n1: Test NCCL failure common.cu:961 'internal error - please report this issue / '\n",
        "NCCL failed (internal error)", None, "n1",
    ),
    "buffers of NCCL": (
        NCCL_ERROR.replace("[rank3]: ", "") + "Last error:\nFailed to CUDA calloc async 608 bytes\n",
        "the accelerator is out of memory", None, None,
    ),
    "last error of NCCL": (
        NCCL_ERROR + "[rank3]: Last error:\n[rank3]: Cuda failure 401 'the operation cannot be performed'\n",
        "a GPU call of NCCL failed (the operation cannot be performed)", 3, None,
    ),
    "heartbeats of tasks": (
        "jax.errors.JaxRuntimeError: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n"
        "/job:jax_worker/replica:0/task:3\nThe tasks have crashed.\n", DIED, 3, None,
    ),
    "barrier of tasks": (
        "jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: a::1.\nThe first task at the barrier: "
        "/job:jax_worker/replica:0/task:2. Some timed out task names:\n/job:jax_worker/replica:0/task:5\n",
        WAITED, 5, None,
    ),
    "instruction in XLA": (
        "jax.errors.JaxRuntimeError: INTERNAL: Failed to record CUDA event: CUDA_ERROR_ILLEGAL_INSTRUCTION\n",
        "the program ran an invalid instruction on the GPU", None, None,
    ),
    "network between slices": (
        "Megascale detects a hang but cannot determine the root cause. Please inspect it.\n", WAITED, None, None,
    ),
    "TPU of a slice": (
        "Megascale detects a hang that is likely caused by bad TPU chips on the following hosts. Please remove them.\n"
        "The host that have bad TPUs are: gke-tpu-1-abc\n", "an accelerator halted", None, "gke-tpu-1-abc",
    ),
    "check for NaN": (
        FRAMES + "FloatingPointError: invalid value (nan) encountered in jit(train_step)\n", "a value became NaN",
        None, None,
    ),
    "file on a network": (
        of_rank(4, "TimeoutError: [Errno 110] Connection timed out: '/nfs/a.bin'"), "a file system failed", 4, None,
    ),
    "locks of files": (
        of_rank(0, "OSError: [Errno 37] No locks available"), "a file system does not support locks", 0, None,
    ),
    "fork": (
        FRAMES + "BlockingIOError: [Errno 11] Resource temporarily unavailable\n",
        "a user has too many processes or threads", None, None,
    ),
    "memory policy": (
        "numactl: This system does not support NUMA policy\n", "the container may not bind memory", None, None,
    ),
    "allocation that ended": (
        "srun: error: Unable to confirm allocation for job 12345: Invalid job id specified\n",
        "the job's allocation has ended", None, None,
    ),
    "matrix product": (
        of_rank(1, "RuntimeError: /opt/gemm/cublaslt_gemm.cu:750 in function cublas_gemm: cuBLAS Error: the function "
                "failed to launch on the GPU"),
        "a GPU library failed (the function failed to launch on the GPU)", 1, None,
    ),
    "matrix product with a value that the library does not support": (
        of_rank(1, "RuntimeError: /opt/gemm/cublaslt_gemm.cu:412 in function cublas_gemm: cuBLAS Error: an unsupported "
                "value or parameter was passed to the function"),
        "a GPU library failed (an unsupported value or parameter was passed to the function)", 1, None,
    ),
    "GPUs that only TensorFlow misses": (
        "2025-01-20 10:00:00.0: E external/local_xla/xla/cuda_driver.cc:152] failed call to cuInit: INTERNAL: CUDA "
        f"error: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n{FRAMES}KeyError: 1\n",
        "a process failed with KeyError", None, None,
    ),
    "warning of NCCL that the program survived": (
        "n1:1:2 [0] transport/nvls.cc:598 NCCL WARN Cuda failure 1 'invalid argument'\n"
        + of_rank(0, "TypeError: unexpected keyword argument"), "a process failed with TypeError", 0, None,
    ),
    "call that a graph does not allow": (
        of_rank(3, "torch.AcceleratorError: CUDA error: operation not permitted when stream is capturing\n"
                "Search for `cudaErrorStreamCaptureUnsupported' in the documentation.\n"),
        "the program made a call that a CUDA graph does not allow", 3, None,
    ),
    "stream that a graph does not join": (
        of_rank(3, "torch.AcceleratorError: CUDA error: capturing stream has unjoined work\n"),
        "the program made a call that a CUDA graph does not allow", 3, None,
    ),
    "copy in a graph": (
        of_rank(3, "RuntimeError: Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU "
                "tensor is pinned.\n"), "the program made a call that a CUDA graph does not allow", 3, None,
    ),
    "plans of cuDNN": (
        of_rank(1, "RuntimeError: /opt/f16.cu:373 in function operator(): cuDNN Error: [cudnn_frontend] Error: No "
                "execution plans support the graph.. For more information, enable logging.\n"),
        "no attention kernel supports the model and the settings", 1, None,
    ),
    "window of symmetric memory": (
        of_rank(2, "RuntimeError: NCCL error: invalid argument (run with NCCL_DEBUG=WARN for details)\n"),
        "NCCL failed", 2, None,
    ),
    "halted TPU": (
        "E1224 10:00:00.1 7 x.cc:1] 0x0x0_TC0: *** Halt is unexpected, all pending programs will fail. This is\n",
        "an accelerator halted", None, None,
    ),
    "memory that the network may not read": (
        of_rank(10, "RuntimeError: NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO for details)\n")
        + "n1:4:8 [0] misc/ibvwrap.cc:182 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Invalid argument\n",
        "the network adapter cannot access the GPU's memory", None, "n1",
    ),
    "memory that the network may not lock": (
        "n1:4:8 [0] misc/ibvwrap.cc:182 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\n",
        "the processes may not lock enough memory for the network", None, "n1",
    ),
    "signal in Lightning": (
        f"[rank: 5] Received SIGTERM: 15\n{FRAMES}lightning.pytorch.utilities.exceptions.SIGTERMException\n",
        "unknown: a process was terminated", 5, None,
    ),
    "preemption by Kueue": (
        "  Normal  EvictedDueToPreempted  2m  kueue  Preempted to accommodate a workload (UID: 9f54, JobUID: a20d)\n",
        "the scheduler took the job's nodes for another one", None, None,
    ),
    "preemption by Kubernetes": (
        "  Normal  Preempted  2m  default-scheduler  Preempted by pod 1d6e3a04-1b0c on node n1\n",
        "the scheduler took the job's nodes for another one", None, None,
    ),
    "time limit of Kubernetes": (
        "  Warning  DeadlineExceeded  1m  job-controller  Job was active longer than specified deadline\n",
        "the job reached its time limit", None, None,
    ),
    "bad cores of a TPU": (
        f"{MEGASCALE}bad TPU tensor core chips on the following hosts. Please remove the hosts from the fleet.\n"
        "  The host that have bad TPUs are: tpu-w-3\n", "an accelerator halted", None, "tpu-w-3",
    ),
    "hosts of the network between slices": (
        f"{MEGASCALE}a networking issue. Please examine the networking stack of these hosts.\n"
        "  The hosts are: tpu-w-3\n", "the network between the nodes failed", None, "tpu-w-3",
    ),
    "different programs": (
        f"{MEGASCALE}inconsistent HLO module compilation across workers.\n", "processes run different programs",
        None, None,
    ),
    "hang between slices": (f"{MEGASCALE}running different modules on different devices.\n", WAITED, None, None),
    "TPU in use": (
        "RuntimeError: Unable to initialize backend 'tpu': UNKNOWN: TPU initialization failed: open(/dev/vfio/0): "
        "Device or resource busy: Device or resource busy; Couldn't open iommu group /dev/vfio/0\n",
        "an accelerator is held by another process", None, None,
    ),
    "lost slice builder": (
        "E1 10:00:01.0 9 x.cc:1] Lost connection to the SliceBuilder controller task (normally worker task 0).\n",
        DIED, None, None,
    ),
    "old CPU": (
        "FATAL ERROR: This binary was compiled with avx enabled, but this feature is not available on this processor\n",
        "a process crashed (illegal instruction)", None, None,
    ),
    "daemon of a step on a host": (
        "slurmstepd-sp-0003: error: pyxis: couldn't start container\n"
        "srun: error: sp-0003: task 4: Exited with exit code 1\n",
        "the container could not be started", None, "sp-0003",
    ),
    "rank of an actor of Ray": (
        "".join(f"(Worker[rank=8] pid=7, ip=10.0.0.9) {line}\n" for line in f"{FRAMES}ValueError: bad".splitlines()),
        "a process failed with ValueError", 8, "10.0.0.9",
    ),
    "library of collectives": (
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: NCCL operation ncclGetUniqueId(&id) failed: Unable to load "
        "NCCL library. Multi-GPU collectives will not work.;\n", "a GPU library could not start", None, None,
    ),
    "TPU in use of another version": (
        "E1 10:00:00.1 7 x.cc:1] Failed to initialize TPU system with error: FAILED_PRECONDITION: open(/dev/vfio/0): "
        "Device or resource busy: Device or resource busy\nValueError: No accelerator found.\n",
        "an accelerator is held by another process", None, None,
    ),
    "table with times": (timed("2026-09-17 13:40:05 ", ROOT_CAUSE), "unknown: a process exited with code 1", 3, "w0"),
    "table with times of pods": (
        timed("2026-09-17T13:40:05.123456789Z ", ROOT_CAUSE), "unknown: a process exited with code 1", 3, "w0",
    ),
    "rank after a time": (
        timed("2026-09-17 13:40:05 ", of_rank(2, "ValueError: bad shard")), "a process failed with ValueError", 2, None,
    ),
    "rank after a time of containerd": (
        timed("2026-09-17T13:40:05.123456789Z stderr F ", of_rank(2, "ValueError: bad shard")),
        "a process failed with ValueError", 2, None,
    ),
    "rank after a time of ts": (
        timed("Sep 17 13:40:05 ", of_rank(2, "ValueError: bad shard")), "a process failed with ValueError", 2, None,
    ),
    "rank after a clock": (
        timed("13:40:05.12 ", of_rank(2, "ValueError: bad shard")), "a process failed with ValueError", 2, None,
    ),
    "TPU that may not be opened": (
        "RuntimeError: UNKNOWN: TPU initialization failed: open(/dev/accel0): Operation not permitted\n",
        "an accelerator or its driver failed", None, None,
    ),
    "module that is optional": (
        "WARNING:root:Failed to import modelopt: ModuleNotFoundError: No module named 'modelopt'\n" + "loading\n" * 9
        + FRAMES + "AssertionError: bad shape\n", "a process failed with AssertionError", None, None,
    ),
    # triton-lang/triton 11747
    "compiler that aborted": (
        "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.x.wait\nAborted (core dumped)\n",
        "the compiler of GPU kernels aborted", None, None,
    ),
}  # fmt: skip

HARMLESS = [
    "n2:311:405 [0] transport/net_ib.cc:199 NCCL WARN NET/IB : mlx5_32:1 Got async error event: port active\n",
    f"{XID}145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)\n",
    f"{XID}63, pid='<unknown>', Row Remapper: New row (0x1) marked for remapping, reset gpu to activate.\n",
    f"{XID}121, pid=7, C2C Link corrected error\n",
    f"{XID}162, PSHC_REENGAGED\n",
    "n1:1:2 [0] NCCL INFO MNNVL busId 0x1901000 fabric UUID 0.0 cliqueId 0x7ffe state 3 healthMask 0x0\n",
    "WARN: IB: read failed in ib_roce_get_version_num: Invalid argument\n",
    "Failed to check the \"should dump\" flag on TCPStore, (maybe TCPStore server has shut down too early)\n",
    "Error while fetching `HF_TOKEN` secret value from your vault: 'Requesting secret HF_TOKEN timed out.'\n",
    "  | Name  | Type   | Params\n  | model | GPTModel | 8.0 B\n",
]  # fmt: skip
"""Messages of healthy runs that resemble those of failures."""
