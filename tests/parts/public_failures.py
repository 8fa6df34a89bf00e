"""Logs of failures in public issues and repositories: each text follows the one named above it, in our own words.

The first value after the text is the cause, then the rank and the host.
"""

from __future__ import annotations

from parts.recent_failures import FRAMES, STEPS

NOT_DIVISIBLE = "the parallel degrees or batch sizes do not fit the model or the number of GPUs"
BATCH = "the batch sizes do not fit the parallel degrees"
BINDING = "the CPU binding does not match the job's cores"
SHARED_MEMORY = "the container has too little shared memory"
CONTROLLER = "Slurm's controller did not respond"
CREDENTIAL = "a node rejected the job's credential"
GPU_CHECK = "a check on the GPU failed (device-side assert)"
GPU_TYPE = "the image was not built for this GPU type"
LIBRARY = "a library of the image does not match"
MISFIT = "a checkpoint does not fit the model"
NO_GPU = "no GPU is visible to the process"
NO_KERNEL = "no attention kernel supports the model and the settings"
PYXIS = "slurmstepd: error: pyxis: couldn't start container\n"
TOOLKIT = "the CUDA toolkit does not match PyTorch"
TRITON_CACHE = "processes disturbed each other in a shared cache of compiled kernels"
OPTIONAL = (
    'Traceback (most recent call last):\n  File "/opt/te/__init__.py", line 10, in <module>\n    import flash_attn_3\n'
    "ModuleNotFoundError: No module named 'flash_attn_3'\n"
)


def launched(node: str, reason: str) -> str:
    return (
        f"srun: error: Task launch for 23.0 failed on node {node}: {reason}\n"
        f"srun: error: Application launch failed: {reason}\nsrun: error: Timed out waiting for job step to complete\n"
    )


def of_xla(last_error: str) -> str:
    return (
        "3: jax.errors.JaxRuntimeError: INTERNAL: RCCL operation ncclGroupEnd() failed: unhandled cuda error (run with "
        f"NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be unrelated) '{last_error}'.\n"
    )


def root_cause(traceback: str, code: int = 1) -> str:
    """Return the report of torchrun about rank 3, with its traceback, and about one that torchrun ended."""
    indented = traceback.replace("\n", "\n  ")
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + "=" * 60 + "\ntrain FAILED\n"
        + "-" * 60 + "\nFailures:\n[1]:\n  time      : 2026-04-30_00:03:36\n  host      : w0\n  rank      : 0 "
        "(local_rank: 0)\n  exitcode  : -15 (pid: 4)\n  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received "
        "by PID 4\n" + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-04-30_00:03:31\n"
        f"  host      : w0\n  rank      : 3 (local_rank: 3)\n  exitcode  : {code} (pid: 7)\n  error_file: /tmp/a.json\n"
        f"  traceback : {indented}\n" + "=" * 60 + "\n"
    )  # fmt: skip


FAILED = {
    # PKU-DAIR/Hetu-Galvatron 12: the trainer exits without an exception
    "helpers of the dataset": (
        "make: *** No targets specified and no makefile found.  Stop.\nFailed to compile the C++ dataset helper "
        "functions\n" + root_cause("To enable traceback see: https://pytorch.org"),
        "the index of the dataset needs code in C++ that could not be compiled", 3, "w0",
    ),
    # QIU023/torchtitan_attention_residual: the exception is in the report alone
    "exception in the report of torchrun": (
        "training\n" * 9 + root_cause(FRAMES + "RuntimeError: Cannot send a request, as the client was closed."),
        "a process failed with RuntimeError", 3, "w0",
    ),
    "exception in the report of torchrun after a timeout": (
        "[rank0]:[E1122 10:20:07.8 a.cpp:6] [Rank 0] Watchdog caught collective operation timeout: x\n"
        + root_cause(FRAMES + "KeyError: 'text'"), "a process failed with KeyError", 3, "w0",
    ),
    "chained exceptions in the report of torchrun": (
        root_cause(f"{FRAMES}KeyError: 1\n\nThe above exception was the direct cause of the following exception:\n\n"
                   f"{FRAMES}ValueError: bad shard"), "a process failed with ValueError", 3, "w0",
    ),
    "lost connection in the report of torchrun": (
        root_cause(FRAMES + "torch.distributed.DistBackendError: NCCL error in: x.cpp:94\n"),
        "unknown: a process exited with code 1", 3, "w0",
    ),
    "check of a kernel": (
        root_cause(FRAMES + "RuntimeError: Triton Error [CUDA]: device-side assert triggered", -6), GPU_CHECK, 3, "w0",
    ),
    "checkpoint of another model": (
        FRAMES + "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0, 1])\n"
        'Traceback (most recent call last): (RANK 0)\n  File "/opt/utils.py", line 192, in reduce_scatter\n    '
        "local_data = map_fun()\nRuntimeError: Missing key in checkpoint state_dict: embed_tokens.weight.\n",
        MISFIT, None, None,
    ),
    "error of a rank in a checkpoint": (
        FRAMES + "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0])\n"
        'Traceback (most recent call last): (RANK 0)\n  File "/opt/utils.py", line 192, in write\n    x()\n'
        "TypeError: cannot pickle 'module' object\n", "a process failed with TypeError", None, None,
    ),
    "file that is optional": (
        "Failed to load generation config for /m: /m does not appear to have a file named generation_config.json.\n"
        + "loading\n" * 9 + FRAMES + "ValueError: requires `accelerate`\n",
        "a process failed with ValueError", None, None,
    ),
    "optional module before an exception": (
        OPTIONAL + "using v2\n" * 9 + FRAMES + "ValueError: bad shard\n", "a process failed with ValueError", None,
        None,
    ),
    "global batch size": (
        FRAMES + "AssertionError: global batch size must be multiple of local batch size times data-parallel degree "
        "(8 % (8 * 2) != 0)\n", BATCH, None, None,
    ),
    "stages": (
        FRAMES + "ValueError: Number of microbatches (1) must be greater than or equal to the number of stages (8).\n",
        BATCH, None, None,
    ),
    # bigyanghimire/deepspeed-experiments
    "attention heads": (
        "0: [rank3]: ValueError: Attention head count 28 is not divisible by SP size 8\n", NOT_DIVISIBLE, 3, None,
    ),
    # fyh2001/megatron-sft-recipes
    "head dimension": (
        FRAMES + "RuntimeError: FlashAttention forward only supports head dimension at most 256\n", NO_KERNEL, None,
        None,
    ),
    # JuliaParallel/ClusterManagers.jl 91; slurm.schedmd.com/faq.html
    "expired credential": (launched("magi70", "Job credential expired"), CREDENTIAL, None, "magi70"),
    "invalid credential": (launched("n1", "Invalid job credential"), CREDENTIAL, None, "n1"),
    # mknoxnv/ubuntu-slurm 4
    "prolog": (launched("hpc", "Job prolog failed"), "the prolog of a node failed", None, "hpc"),
    # StanfordLegion/gasnet 25
    "launch that timed out": (
        "srun: error: timeout waiting for task launch, started 3 of 4 tasks\nsrun: StepId=7.0 aborted before step "
        "completely launched.\n", "a node did not start its ranks", None, None,
    ),
    "other reason of a launch": (
        launched("n2", "Communication connection failure"), "a node did not start its ranks", None, "n2",
    ),
    "controller": (
        "srun: error: Unable to confirm allocation for job 25: Unable to contact slurm controller (connect failure)\n",
        CONTROLLER, None, None,
    ),
    "busy controller": (
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", CONTROLLER, None, None,
    ),
    "busy controller and srun": (
        "srun: error: Unable to allocate resources: Socket timed out on send/recv operation\n", CONTROLLER, None, None,
    ),
    "ended allocation": (
        "srun: error: Unable to confirm allocation for job 724: Invalid job id specified\n",
        "the job's allocation has ended", None, None,
    ),
    # amd-agi/maxtext-slurm: XLA left too little memory for other libraries
    "memory of ROCm": (
        ":0:rocdevice.cpp :3583: 7d us: Aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to "
        "allocate. Available Free mem : 24 MB\nAborted\n", "the accelerator is out of memory", None, None,
    ),
    "queue of ROCm": (
        "Queue 0x7f Aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: x. Available Free mem : 24576 MB\n",
        "a GPU or its driver failed (HSA_STATUS_ERROR_OUT_OF_RESOURCES: the GPU has no memory or no registers left)",
        None, None,
    ),
    "buffers of NCCL under XLA": (
        of_xla("Failed to CUDA calloc 6291456 bytes"), "the accelerator is out of memory", 3, None,
    ),
    "call of NCCL under XLA": (
        of_xla("Cuda failure 1 'invalid argument'"), "a GPU call of NCCL failed (invalid argument)", 3, None,
    ),
    "channels of MSCCL": (
        of_xla("MSCCL: number of channels available (28) less than required (32)"),
        "RCCL has fewer channels than its algorithm (MSCCL) needs", 3, None,
    ),
    # hpc-community.unige.ch/t/4195
    "expired job": ("srun: error: Slurm job 724 has expired\n", "the job's allocation has ended", None, None),
    "munge": (
        'srun: error: Munge encode failed: Failed to access "/var/run/munge/munge.socket.2": No such file\n'
        "srun: error: Unable to allocate resources: Protocol authentication error\n",
        "Slurm's authentication (munge) failed", None, None,
    ),
    "salloc": (
        "salloc: error: Job submit/allocate failed: Invalid account or account/partition combination specified\n",
        "Slurm rejected the job", None, None,
    ),
    # eth-cscs/cscs-docs, and other notes of sites
    "program of a hook": (
        "slurmstepd: error: pyxis: container exited too soon\nslurmstepd: error: pyxis:     [ERROR] Command not found: "
        f"ldconfig\n{PYXIS}", "a program that enroot needs is missing on the node (ldconfig)", None, None,
    ),
    "entry point": (
        f"slurmstepd: error: pyxis: container exited too soon\n{PYXIS}",
        "the container does not start with the image's entry point", None, None,
    ),
    "cache of enroot": (
        f"slurmstepd: error: pyxis:     zstd: /raid/enroot-cache/d92: Permission denied\n{PYXIS}",
        "enroot cannot read its cache on the node", None, None,
    ),
    "image of another format": (
        f"slurmstepd: error: pyxis:     [ERROR] Invalid image format: /home/u/nemo.sqsh\n{PYXIS}",
        "the container image is damaged", None, None,
    ),
    "full disk of parallel": (
        "slurmstepd: error: pyxis:     parallel: Error: Output is incomplete. Cannot append to buffer file in /tmp. Is "
        "the disk full?\nslurmstepd: error: pyxis: failed to import docker image\n", "a disk is full", None, None,
    ),
    "version of the toolkit": (
        "slurmstepd: error: pyxis:     nvidia-container-cli: container error: file lookup failed: /proc/5/root/etc/x: "
        f"permission denied\nslurmstepd: error: pyxis:     [ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return "
        f"code 1\n{PYXIS}", "the GPU driver cannot be added to the container", None, None,
    ),
    "short name": (
        'Error: short-name "nemo:25" did not resolve to an alias and no unqualified-search registries are defined\n',
        "the image's address has no registry", None, None,
    ),
    "subordinate ids": (
        "Error: writing blob: adding layer: (potentially insufficient UIDs or GIDs available in user namespace "
        "(requested 0:42 for /etc/gshadow): lchown /etc/gshadow: invalid argument)\n",
        "the user has too few subordinate user ids for containers", None, None,
    ),
    "mount of Podman": (
        "Error: statfs /data/c4: no such file or directory\n",
        "the source of a container mount does not exist on the node (/data/c4)", None, None,
    ),
    # DeepSpeed's compiler of operators
    "extension": (
        "FAILED: adam.o\na.cu(3): error: no operator\nninja: build stopped: subcommand failed.\n" + FRAMES
        + "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.\n\nThe above "
        f"exception was the direct cause of the following exception:\n\n{FRAMES}RuntimeError: Error building extension "
        "'fused_adam'\n", "an extension in C++ or CUDA could not be compiled (fused_adam)", None, None,
    ),
    "toolkit of DeepSpeed": (
        FRAMES + "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA "
        "version 12.4 does not match the version torch was compiled with 11.8\n", TOOLKIT, None, None,
    ),
    "toolkit of PyTorch": (
        FRAMES + "RuntimeError: \nThe detected CUDA version (12.1) mismatches the version that was used to compile\n"
        "PyTorch (11.8).\n", TOOLKIT, None, None,
    ),
    "no toolkit": (
        FRAMES + "deepspeed.ops.op_builder.builder.MissingCUDAException: CUDA_HOME does not exist, unable to compile\n",
        "the environment has no CUDA toolkit", None, None,
    ),
    "old nvcc": (
        f"nvcc fatal   : Unsupported gpu architecture 'compute_100'\n{FRAMES}RuntimeError: Error building extension "
        "'fused_adam'\n", "the image's compiler for GPU code does not know this GPU type (compute_100)", None, None,
    ),
    "headers of Python": (
        "/tmp/t/main.c:5:10: fatal error: Python.h: No such file or directory\n" + FRAMES + "InductorError: "
        "CalledProcessError: Command '['/usr/bin/gcc']' returned non-zero exit status 1.\n",
        "the environment has no headers of Python, which compilers of kernels need", None, None,
    ),
    "pip": (
        "ERROR: Could not find a version that satisfies the requirement a==9\nERROR: No matching distribution found "
        "for a==9\n", "a package could not be installed, because no version fits the requirements", None, None,
    ),
    "pip before a missing module": (
        f"ERROR: No matching distribution found for a==9\n{FRAMES}ModuleNotFoundError: No module named 'a'\n",
        "a Python module is missing in the job's environment", None, None,
    ),
    "Python of the system": (
        "error: externally-managed-environment\n", "the system's Python accepts no packages from pip", None, None,
    ),
    # pytorch/pytorch 173679
    "cache of kernels": (
        "[rank19]: InductorError: OSError: [Errno 116] Stale file handle: '/root/.triton/cache/AB/cuda_utils.so'\n",
        TRITON_CACHE, 19, None,
    ),
    "NumPy": (
        FRAMES + "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96\n",
        LIBRARY, None, None,
    ),
    "jaxlib": (
        FRAMES + "RuntimeError: jaxlib version 0.4.31 is newer than and incompatible with jax version 0.4.30.\n",
        LIBRARY, None, None,
    ),
    # AI-Hypercomputer/maxtext 4372
    "checkpoint of Orbax": (
        FRAMES + "ValueError: User-provided restore item and on-disk value metadata tree structures do not match\n",
        MISFIT, None, None,
    ),
    "script of a dataset": (
        FRAMES + "RuntimeError: Dataset scripts are no longer supported, but found c4.py\n",
        "the dataset is a script, which this version of the datasets library does not run", None, None,
    ),
    "code of a dataset": (
        FRAMES + "ValueError: The repository for a/b contains custom code which must be executed to correctly load\n",
        "the model or dataset contains code that the program may not run", None, None,
    ),
    "type of a model": (
        FRAMES + "ValueError: The checkpoint you are trying to load has model type `qwen3_next` but Transformers does "
        "not recognize this architecture.\n",
        "the installed transformers library does not know the model's type (qwen3_next)", None, None,
    ),
    "account of wandb": (
        FRAMES + "wandb.errors.errors.AuthenticationError: The API key you provided is either invalid or missing.\n",
        "a logger of metrics has no account", None, None,
    ),
    "scope of a VM": (
        FRAMES + "PermissionDeniedError: HTTP response code 403 with body '{\n\"message\": \"Provided scope(s) are not "
        'authorized"\n', "the nodes may not use Google Cloud Storage", None, None,
    ),
    # ROCm/AMDMIGraphX 3488, harryjo97/GDSS 6, l1na-forever/stable-diffusion-rocm-docker 1
    "no GPU of AMD": (FRAMES + "RuntimeError: No HIP GPUs are available\n", NO_GPU, None, None),
    "no device of HIP": (
        "terminate called after throwing an instance of 'c10::HIPError'\n  what():  HIP error: hipErrorNoDevice\n",
        NO_GPU, None, None,
    ),
    "other GPU of AMD": ('"hipErrorNoBinaryForGpu: Unable to find code object!"\nAborted (core dumped)\n', GPU_TYPE,
                         None, None),
    "stub of the driver": (
        FRAMES + "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 34: CUDA driver is a stub library\n",
        "the program found a stub instead of the GPU driver's library", None, None,
    ),
    "driver that could not start a GPU": (
        f"node7 kernel: NVRM: GPU 0000:4e:00.0: RmInitAdapter failed! (0x62:0x0:2015)\n{FRAMES}RuntimeError: No CUDA "
        "GPUs are available\n", "a GPU has a hardware error (its driver could not start it)", None, "node7",
    ),
    "shared memory of UCX": (
        "[170.1] [n3:20:0] mm_posix.c:234  UCX  ERROR   Not enough memory to write total of 4292720 bytes. Please "
        "check that /dev/shm or the directory you specified has more available memory.\n",
        "the container has too little shared memory", None, None,
    ),
    # AI-Hypercomputer/maxtext, benchmarks/maxtest/getting_started.md
    "driver of a TPU": (
        "E0511 18:18:50.796852 915 tpunetd_client.cc:311] Detected failure SLICE_FAILURE_CHIP_DRIVER_ERROR in session "
        "e6; Start failure handling\n", "an accelerator or its driver failed (CHIP_DRIVER_ERROR)", None, None,
    ),
    "bad TPU": (
        "6x2x0_SC1: *** A program or fatal error occurred, all pending programs will fail, and results may be "
        "corrupted. This is likely an XLA compiler bug or your job hit a bad TPU hardware.\n",
        "an accelerator halted", None, None,
    ),
    # NVIDIA/enroot 30, 32, 141; NVIDIA/pyxis 87
    "import on NFS": (
        f"slurmstepd: error: pyxis:     enroot-mksquashovlfs: failed to mount overlay: 0:1: Invalid argument\n{PYXIS}",
        "enroot's directories are on a file system that has no overlays", None, None,
    ),
    "capability of enroot": (
        "enroot-aufs2ovlfs: failed to set capabilities: Operation not permitted\n",
        "the nodes do not allow users to convert images", None, None,
    ),
    "image that cannot be mounted": (
        "[WARN] fuse: unknown option `uid=2039'\n[ERROR] Failed to mount: /home/folz/ubuntu.sqsh\n",
        "the node cannot mount the image", None, None,
    ),
    "devices of another boot": (
        'Error: setting up CDI devices: failed to inject devices: failed to stat CDI host device "/dev/dri/card": no\n',
        "the container engine does not know the GPUs of the node", None, None,
    ),
    "devices that may not be opened": (
        "Failed to initialize NVML: Insufficient Permissions\n", "the container may not open the devices of the GPUs",
        None, None,
    ),
    "files of Podman": (
        "Error: crun: open `/home/u1/storage/overlay/cb4/merged`: Permission denied: OCI permission denied\n",
        "the container engine may not use a file", None, None,
    ),
    "limits of System V": (
        "[170.1] [n3:20:0] UCX  ERROR shmget(size=4194304) for mm_recv_desc failed: Cannot allocate memory, please "
        "check shared memory limits by 'ipcs -l'\n", "the node allows too little shared memory of System V", None, None,
    ),
    "read-only image": (
        FRAMES + "OSError: [Errno 30] Read-only file system: '/opt/x'\n",
        "the program writes to a file system that is read-only", None, None,
    ),
    "no launcher": (
        FRAMES + "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable "
        "MASTER_ADDR expected, but not set\n", "the launcher did not set the variable MASTER_ADDR", None, None,
    ),
    "interface of Gloo": (
        FRAMES + "RuntimeError: [enforce fail at device.cc:83] ifa != nullptr. Unable to find address for: eth0\n",
        "Gloo found no network interface (eth0)", None, None,
    ),
    # chapel-lang/chapel 26788, Emmi-AI/noether 233
    "binding of CPUs": (
        "srun: error: CPU binding outside of job step allocation, allocated CPUs are: 0x00FFFF.\n"
        + launched("n1", "Unable to satisfy cpu bind request"), BINDING, None, None,
    ),
    "layout of tasks": (launched("n1", "Unable to layout tasks on given cpus"), BINDING, None, None),
    # snakemake/snakemake 2912, dask/dask 12208
    "options of an enclosing job": (
        "srun: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.\n",
        "srun rejected its options", None, None,
    ),
    "options of sbatch": (
        "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
        "Slurm rejected the job", None, None,
    ),
    "program that may not run": (
        "slurmstepd: error: execve(): /home/u/run.sh: Permission denied\n",
        "a program that the job starts cannot be executed (Permission denied)", None, None,
    ),
    "memory file of Python": (
        FRAMES + "OSError: [Errno 28] No space left on device: '/dev/shm/psm_ab12'\n", SHARED_MEMORY, None, None,
    ),
    "copy from memory to a disk": (
        FRAMES + "OSError: [Errno 28] No space left on device: '/dev/shm/ckpt.pt' -> '/scratch/ckpt.pt'\n",
        "a disk is full", None, None,
    ),
    "memory file of cp": ("cp: error writing '/dev/shm/a': No space left on device\n", SHARED_MEMORY, None, None),
    "memory file of a compiler": (
        "/tmp/a.s: fatal error: cannot write /dev/shm/a.o: No space left on device\n", SHARED_MEMORY, None, None,
    ),
    "disk with a folder of the same name": (
        FRAMES + "OSError: [Errno 28] No space left on device: '/data/dev/shm/a'\n", "a disk is full", None, None,
    ),
    "memory file of PyTorch": (
        FRAMES + "RuntimeError: unable to open shared memory object </torch_1_2> in read-write mode: No space left on "
        "device (28)\n", SHARED_MEMORY, None, None,
    ),
    "files of PyTorch": (
        FRAMES + "RuntimeError: unable to open shared memory object </torch_1_2> in read-write mode: Too many open "
        "files (24)\n", "a process had too many files open", None, None,
    ),
    "port of a container": (
        "docker: Error response from daemon: Bind for 0.0.0.0:29500 failed: port is already allocated.\n",
        "a port is in use on the node", None, None,
    ),
    "part of a download": (
        "requests.exceptions.ChunkedEncodingError: ('Connection broken: IncompleteRead(3 bytes read)')\n",
        "a download was cut off", None, None,
    ),
    "nodes that became free later": (
        "Warning  FailedScheduling  default-scheduler  0/16 nodes are available: 16 Insufficient nvidia.com/gpu.\n"
        + STEPS + FRAMES + "ValueError: bad shard\n", "a process failed with ValueError", None, None,
    ),
    "node that was shut down": (
        STEPS + "Pod was terminated in response to imminent node shutdown.\n",
        "the node was shut down while the job ran", None, None,
    ),
    "no free GPUs": (
        "Warning  FailedScheduling  default-scheduler  0/16 nodes are available: 16 Insufficient nvidia.com/gpu.\n",
        "no node has what the job requests (nvidia.com/gpu)", None, None,
    ),
    # PyTorch's message of an index outside of a table, before that of a library
    "index out of range before cuBLAS": (
        "/a/native/cuda/Indexing.cu:1292: indexSelectLargeIndex: block: [466,0,0], thread: [95,0,0] Assertion "
        "`srcIndex < srcSelectDimSize` failed.\n" + FRAMES + "RuntimeError: CUDA error: "
        "CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\n", GPU_CHECK, None, None,
    ),
    # NVIDIA/Megatron-LM 119
    "missing dataset before its sizes": (
        "Dataset does not exist: /data/text\nPath should be a basename that both .idx and .bin can be appended to.\n"
        + FRAMES + "AttributeError: 'NoneType' object has no attribute 'sizes'\n", "the dataset is missing", None, None,
    ),
    # pyiron/executorlib 761
    "no library for the MPI type": (
        "srun: error: Couldn't load specified plugin name for mpi/pmix: Plugin init() callback failed\n"
        "srun: error: MPI: Unable to load any plugin\n"
        "srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types\n",
        "Slurm cannot start processes with this MPI type (pmix)", None, None,
    ),
    # Podman's message of a registry that rejects a login
    "credentials of Podman": (
        "Error: initializing source docker://r.io/a:1: Requesting bearer token: invalid status code from registry 401 "
        "(Unauthorized)\n", "the registry rejected the credentials for the image", None, None,
    ),
}  # fmt: skip

IN_EXIT = (
    "1: Exception ignored in atexit callback: <function update at 0x7f61>\n1: Traceback (most recent call last):\n"
    '1:   File "/opt/matmul.py", line 480, in update_table\n1:     fp16_matmul.update()\n'
)
HARMLESS = [
    # bigyanghimire/deepspeed-experiments: two processes write to one label
    IN_EXIT + IN_EXIT + "1: FileNotFoundError: [Errno 2] No such file: 'a.tmp'\n" * 2,
    "W0403 16:15:06.176000 5 dynamic_rendezvous.py:1331] The node 'a_5_0' has failed to send a keep-alive heartbeat to "
    "the rendezvous '1' due to an error of type RendezvousTimeoutError.\n",
    # amd-agi/maxtext-slurm, its list of harmless messages
    "E0000 a.cc:1] Failed call to cuInit: UNKNOWN ERROR (303)\nINTERNAL: CUDA error: UNKNOWN ERROR (303)\n",
    "n1:1:2 [0] NCCL WARN MSCCL++: Feature not enabled\n",
    "OCI runtime exec failed: exec failed: unable to start container process: error executing setns process\n",
    "/a.py:3: RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C\n",
    "Failed to load generation config for /m: /m does not appear to have a file named generation_config.json.\n",
    "The repository for a/b contains custom code which must be executed to correctly load the model.\n",
    "slurmstepd: error: Munge decode failed: Expired credential\n",
    "mkdir -p failed for path /root/.config/matplotlib: [Errno 30] Read-only file system: '/root/.config'\n",
]  # fmt: skip
"""Messages of healthy runs that resemble those of failures."""
