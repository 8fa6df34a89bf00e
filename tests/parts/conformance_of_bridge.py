"""Differences from NVIDIA's launcher that all releases of Megatron-Bridge have, each with its reason."""

PATH = "a path"
REASONS = {
    "env.NEMORUN_HOME": PATH,
    "env.HF_HOME": PATH,
    "env.PYTHONUNBUFFERED": "NeMo-Run's job script sets it outside the container, as well as SLURM_UNBUFFEREDIO",
    "env.NUMA_GPUS": "the rank wrapper of llmb reads it; `layout.numa` compares the value",
    "env.SCRIPTS": "the rank wrapper of llmb adds this folder to PYTHONPATH, as the launcher does",
    "srun.--wait": "NeMo-Run's job script has the same option",
    "srun.--kill-on-bad-exit": "NeMo-Run's job script has the same option",
}
