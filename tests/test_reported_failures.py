"""The cause of failures that users reported in public: each text follows the issue named beside it, in our own words.

The first value after the text is the cause, then the rank and the host.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from parts import cluster_failures as cluster
from parts import launcher_failures as launchers
from parts import public_failures as public
from parts import recent_failures as recent
from parts.command_line import Llmb, command_line

FRAMES = 'Traceback (most recent call last):\n  File "/opt/train.py", line 7, in <module>\n    main()\n'
XLA = FRAMES + "jaxlib.xla_extension.XlaRuntimeError: "
PYXIS = "slurmstepd: error: pyxis: container start failed with error code: 1\n"
EXITED = "srun: error: node07: task 0: Exited with exit code 1\n"
DOCKER = "docker: Error response from daemon: "
NO_KERNEL = "no attention kernel supports the model and the settings"
DEGREES = "the parallel degrees or batch sizes do not fit the model or the number of GPUs"


def of_rank(rank: int, error: str) -> str:
    return "".join(f"{rank}: {line}\n" for line in (FRAMES + error).splitlines())


REPORTED = {
    # NVIDIA/nccl 1837
    "wrong interface": (
        "ncclInternalError: Internal check failed.\nLast error:\nncclSocketInit: connecting to address  with family 5 "
        "is neither AF_INET(2) nor AF_INET6(10)\n", "NCCL found no network interface", None, None,
    ),
    # NVIDIA/nccl 1405
    "no InfiniBand device": (
        "node3:201:456 [5] NCCL WARN Error: network IB not found.\n" + FRAMES + "RuntimeError: NCCL error: invalid "
        "usage\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n",
        "NCCL could not use the network (IB)", None, "node3",
    ),
    "shared memory of NCCL": (
        "n1:22:33 [1] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-8VL to 33030532 bytes, "
        "error: No space left on device (28)\n", "the container has too little shared memory", None, "n1",
    ),
    "launch failure in NCCL": (
        "node5:1:2 [3] enqueue.cc:1 NCCL WARN Cuda failure 719 'unspecified launch failure'\n" + EXITED,
        "a GPU or its driver failed", None, "node5",
    ),
    # docs.nvidia.com, Fabric Manager user guide: the first of the two errors is not fatal
    "NVSwitch": (
        "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress\nnvidia-nvswitch3: SXid "
        "(PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n", "an NVSwitch has a fatal error (20034)",
        None, None,
    ),
    # openpmix/openpmix 3559
    "lost node": (
        "slurmstepd: error:  mpi/pmix_v5: pmixp_p2p_send: gpu94 [4]: pmixp_utils.c:469: send failed, rc=1001, exceeded "
        "the retry limit\nsrun: error: Node failure on gpu91\n", "a node of the job failed", None, "gpu91",
    ),
    "memory of a task": (
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=77.0. Some of your processes may have been killed.\n"
        "srun: error: node3: task 5: Out Of Memory\nsrun: Terminating StepId=77.0\n"
        "slurmstepd: error: *** STEP 77.0 ON node1 CANCELLED AT 2026-05-01T10:00:00 ***\n",
        "the host is out of memory", 5, "node3",
    ),
    # apptainer/singularity 5203
    "MPI without PMI": (
        'The application appears to have been direct launched using "srun",\nbut OMPI was not built with SLURM\'s PMI '
        "support and therefore cannot\nexecute.\n" + EXITED, "the MPI of the image does not support srun", 0, "node07",
    ),
    # NVIDIA/pyxis 88
    "PMIx": (
        "It looks like pmix_init failed for some reason; your parallel process is\nlikely to abort.\n[gpu2:12255] PMIX "
        "ERROR: NOT-FOUND in file server/pmix_server.c at line 229\n", "PMIx could not start", None, None,
    ),
    # aws/sagemaker-containers 200
    "MPI without a network": (
        "At least one pair of MPI processes are unable to reach each other for\nMPI communications.\n  Process 1 "
        "([[34076,1],8]) is on host: algo-2\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith "
        "errorcode 1.\n", "MPI processes have no network in common", 0, None,
    ),
    "MPI lost a node": (
        "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[26134,0],0] on node n1\n  Remote "
        "daemon: [[26134,0],3] on node n4\n", "the launcher lost a node", None, "n4",
    ),
    # jax-ml/jax 16901 and 22626
    "cuDNN of another version": (
        "2026-07-19 15:49:01.3: E cuda_dnn.cc:439] Loaded runtime CuDNN library: 8.5.0 but source was compiled with: "
        f"8.6.0.\n{XLA}FAILED_PRECONDITION: DNN library initialization failed.\n",
        "a library of the image does not match", None, None,
    ),
    "cuDNN without memory": (
        "2026-07-19 15:49:01.3: E cuda_dnn.cc:439] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"
        f"{XLA}FAILED_PRECONDITION: DNN library initialization failed.\n", "a GPU library could not start", None, None,
    ),
    # jax-ml/jax 22740
    "rendezvous of XLA": (
        "2026-07-29 17:15:39.9: F rendezvous.cc:54] Termination timeout for `initialize clique for rank 6` of 40 "
        "seconds exceeded. Exiting to ensure a consistent program state.\n",
        "a rank waited in vain for the other ranks", None, None,
    ),
    # MaxText 0.2.5 on two processes, one of which was stopped for 50 s while it compiled
    "Gloo of XLA": (
        f"{XLA}UNKNOWN: Gloo context initialization failed: DEADLINE_EXCEEDED: GetKeyValue() timed out with key: "
        "cpu:gloo/0,2048/1 and duration: 29.999999927s [type.googleapis.com/tensorflow.CoordinationServiceError='']\n",
        "a rank waited in vain for the other ranks", None, None,
    ),
    # google/grain 802
    "restarted process": (
        "2026-04-05 18:39:10.8: E coordination_service.cc:962] /job:jax_worker/replica:0/task:1 unexpectedly tried to "
        "connect with a different incarnation. It has likely restarted.\n", "another process of the run died", 1, None,
    ),
    "ptxas": (
        f"{XLA}INTERNAL: No ptxas binary: Couldn't find a suitable version of ptxas.\n",
        "the image has no compiler for GPU code", None, None,
    ),
    # NVIDIA/TransformerEngine 651
    "attention": (
        of_rank(3, "RuntimeError: fused_attn_f16_arbitrary_seqlen.cu:681 in function operator(): cuDNN Error: No "
                "valid engine configs for MUL_Reduction_."), NO_KERNEL, 3, None,
    ),
    # pytorch/pytorch 103417
    "no library of the driver": (
        "/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1 exit status\n",
        "the linker does not find the driver's library, libcuda.so", None, None,
    ),
    # artidoro/qlora 165, huggingface/transformers 10067
    "no network for a dataset": (
        FRAMES + "ConnectionError: Couldn't reach 'a/pile' on the Hub (LocalEntryNotFoundError)\n",
        "the job cannot reach the model hub", None, None,
    ),
    "hub is down": (
        FRAMES + "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: "
        "https://huggingface.co/api/models/x\n", "the model hub failed", None, None,
    ),
    "pointer of Git LFS": (
        of_rank(5, "_pickle.UnpicklingError: invalid load key, 'v'."),
        "a file of a checkpoint or of the dataset is damaged", 5, None,
    ),
    # NVIDIA/Megatron-LM 659
    "checkpoint of another model": (
        of_rank(0, "RuntimeError: Error(s) in loading state_dict for GPTModel:\n\tsize mismatch for embedding.weight"),
        "a checkpoint does not fit the model", 0, None,
    ),
    "sharded checkpoint": (
        of_rank(0, "megatron.core.dist_checkpointing.core.CheckpointingException: Global shape mismatch for loaded"),
        "a checkpoint does not fit the model or is incomplete", 0, None,
    ),
    # EleutherAI/gpt-neox 90
    "batch sizes of DeepSpeed": (
        FRAMES + "AssertionError: Check batch related parameters. train_batch_size is not equal to 1028 != 1024\n",
        "the batch sizes do not fit the number of GPUs", None, None,
    ),
    "layers": (
        FRAMES + "AssertionError: number of layers should be divisible by the pipeline parallel size\n",
        DEGREES, None, None,
    ),
    "heads": (
        FRAMES + "ValueError: num_attention_heads (30) must be a multiple of tensor_model_parallel_size (8).\n",
        "the parallel degrees do not fit the model", None, None,
    ),
    # NVIDIA/pyxis 127
    "image cut off": (
        f"{PYXIS}slurmstepd: error: pyxis:     FATAL ERROR:Can't find a SQUASHFS superblock on /lustre/nemo.sqsh\n"
        + EXITED, "the container image is damaged", 0, "node07",
    ),
    "registry behind a firewall": (
        DOCKER + 'Get "https://nvcr.io/v2/": net/http: request canceled while waiting for connection\n',
        "the registry does not respond", None, None,
    ),
    "registry of the site": (
        DOCKER + 'Get "https://reg.local/v2/": x509: certificate signed by unknown authority.\n',
        "unknown certificate issuer", None, None,
    ),
    "registry without TLS": (
        DOCKER + 'Get "https://reg.local/v2/": http: server gave HTTP response to HTTPS client\n',
        "the registry does not use TLS", None, None,
    ),
    "name of a registry": (
        DOCKER + 'Get "https://nvcr.io/v2/": dial tcp: lookup nvcr.io on 10.0.0.2:53: no such host.\n',
        "a host name cannot be resolved (nvcr.io)", None, None,
    ),
    "no runtime": (
        DOCKER + "unknown or invalid runtime name: nvidia.\n", "the container engine has no GPU runtime", None, None,
    ),
    "SIGTERM of the agent": (
        "Sending process 12 closing signal SIGTERM\n" + FRAMES
        + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 11 got signal: 15\n",
        "unknown: a process received signal 15", None, None,
    ),
    # NVIDIA/pyxis 101
    "hook of enroot": (
        PYXIS + "slurmstepd: error: pyxis:     [ERROR] no cache\nslurmstepd: error: pyxis:     [ERROR] "
        "/etc/enroot/hooks.d/50-site.sh exited with return code 2\n" + EXITED,
        "a hook of enroot failed (50-site.sh)", 0, "node07",
    ),
    "login of enroot": (
        "slurmstepd: error: pyxis: failed to import docker image\nslurmstepd: error: pyxis:     [ERROR] Authentication "
        "failed\n", "the registry rejected the credentials for the image", None, None,
    ),
    "killed import": (
        "slurmstepd: error: pyxis: child 71 failed with error code: 137\nslurmstepd: error: pyxis: failed to import "
        "docker image\n", "the import of the image was killed, often because the host is out of memory", None, None,
    ),
    "folder in the container": (
        "slurmstepd: error: pyxis: couldn't chdir to /x: No such file or directory\n",
        "the job's folder does not exist in the container", None, None,
    ),
    # NVIDIA/pyxis 84
    "node without pyxis": (
        'error: Warning: SPANK plugin "pyxis" option "container-image" not found\n' + EXITED,
        "a node has no plugin for containers", 0, "node07",
    ),
    "prolog of the controller": (
        "srun: PrologSlurmctld failed, job killed\nsrun: error: Job allocation 9 has been revoked\n",
        "the prolog of Slurm's controller failed", None, None,
    ),
    "revoked": (
        "srun: error: Job allocation 9 has been revoked\n", "unknown: Slurm ended the job's allocation", None, None,
    ),
    "lost connection of srun": (
        "srun: error: Aborting, io error and missing step on node 3\n", "srun lost the connection to a node",
        None, None,
    ),
    "boot": (
        "salloc: error: Nodes n[1-4] are still not ready\n", "nodes of the job did not become ready", None, None,
    ),
    "memory of the node": (
        "slurmstepd: error: *** JOB 7 ON n5 UNCORRECTABLE MEMORY ERROR AT 2026-01-01T10:00:00 ***\n",
        "a node has a hardware error (uncorrectable memory error)", None, "n5",
    ),
    "cancelled, Slurm 24.11": (
        "slurmstepd: error: *** JOB 7 ON n5 CANCELLED AT 2026-01-01T10:00:00 DUE to SIGNAL User defined signal 2 ***\n",
        "the job was cancelled", None, "n5",
    ),
    "gated model without a token": (
        FRAMES + "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/a/b\n"
        "The above exception was the direct cause of the following exception:\n" + FRAMES + "GatedRepoError: 401 "
        "Client Error.\n\nCannot access gated repo for url https://huggingface.co/a/b.\n",
        "the account has no access to the model's files", None, None,
    ),
    "token": (
        FRAMES + "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/a/b\n",
        "the model hub rejected the token", None, None,
    ),
    "assertion of C": (
        "python3: /opt/x.cu:9: void run(): Assertion `n > 0' failed.\nsrun: error: n3: task 5: Aborted (core dumped)\n",
        "a check in native code failed (n > 0)", 5, "n3",
    ),
    "degrees": (of_rank(3, "AssertionError: 28 is not divisible by 8"), DEGREES, 3, None),
    "variable of Megatron": (
        FRAMES + "RuntimeError: Using x requires setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1\n",
        "the variable CUDA_DEVICE_MAX_CONNECTIONS is not 1", None, None,
    ),
    "variable of NCCL that Megatron checks": (
        FRAMES + "AssertionError: Setting NCCL_GRAPH_REGISTER=0 to avoid illegal memory access when using CUDA Graph "
        "with a=expandable_segments:True.\n",
        "CUDA graphs with expandable segments need NCCL_GRAPH_REGISTER=0", None, None,
    ),
    "checkpoint of Megatron": (
        FRAMES + "AssertionError: OptimizerParamScheduler: class input value 1e-06 and checkpointvalue 1e-05 for "
        "minimum learning rate do not match\n",
        "the checkpoint was written with another minimum learning rate", None, None,
    ),
    "killed by the shell": (
        "loading\nKilled\n", "unknown: a process was killed, often because the host is out of memory", None, None,
    ),
}  # fmt: skip

HARMLESS = [
    "/usr/bin/ld: cannot find -lcurand: No such file or directory\n",
    "WARNING: global batch size 1024 is evenly divisible by 8 data parallel groups\n",
    "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error\n",
    "'(MaxRetryError(...))' thrown while requesting HEAD https://huggingface.co/x. Retrying in 1s [Retry 1/5].\n",
    "UserWarning: NVIDIA B200 with CUDA capability sm_100 is not compatible with the current PyTorch installation.\n",
    "node1:9:9 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.\n",
    "[rank0]: W1122 12:00:00.0 site-packages/torch/distributed/run.py:792] Setting OMP_NUM_THREADS to be 1\n",
]
"""Messages of healthy runs that resemble those of failures."""


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


@pytest.mark.parametrize(
    "case",
    [
        *REPORTED.values(),
        *recent.FAILED.values(),
        *public.FAILED.values(),
        *cluster.FAILED.values(),
        *launchers.FAILED.values(),
    ],
    ids=[*REPORTED, *recent.FAILED, *public.FAILED, *cluster.FAILED, *launchers.FAILED],
)
def test_a_reported_failure_has_its_cause(llmb: Llmb, tmp_path: Path, case: tuple[str, str, int | None, str]) -> None:
    text, *expected = case
    log = tmp_path / "job.out"
    log.write_text(text)

    failure = llmb("parse", log, "--framework", "megatron_bridge", "--json").json["failure"]
    assert failure, "no cause"
    assert [failure["cause"], failure["rank"], failure["host"]] == expected
    assert failure["remedy"]


@pytest.mark.parametrize(
    "text",
    [
        *HARMLESS,
        *(recent.STEPS + each for each in (*recent.HARMLESS, *public.HARMLESS, *cluster.HARMLESS, *launchers.HARMLESS)),
    ],
    ids=lambda text: text[-60:],
)
def test_a_message_of_a_healthy_run_is_no_cause(llmb: Llmb, tmp_path: Path, text: str) -> None:
    log = tmp_path / "job.out"
    log.write_text(text)

    assert llmb("parse", log, "--framework", "megatron_bridge", "--json").json["failure"] is None


def test_an_unknown_setting_of_maxtext_is_named(llmb: Llmb, tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    log.write_text(
        "E1123 00:53:25.720898 139695827458944 pyconfig.py:393] MAXTEXT CONFIG ERROR: 'nonsense' not in 'emb_dim'\n"
        + FRAMES + "ValueError: 'nonsense' not in 'emb_dim', 'mlp_dim'\n"
    )  # fmt: skip

    failure = llmb("parse", log, "--framework", "maxtext", "--json").json["failure"]
    assert (failure["cause"], failure["origin"]) == ("a setting of the configuration is invalid", "user")
    assert "'nonsense'" in failure["evidence"]
