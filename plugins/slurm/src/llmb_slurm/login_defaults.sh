# The account and the partition of jobs that name none, from variables that the login may export.
account=${SBATCH_ACCOUNT:-${SLURM_ACCOUNT:-}} partition=${SBATCH_PARTITION:-${SLURM_PARTITION:-}}
export -n account partition # the user may export variables of these names
