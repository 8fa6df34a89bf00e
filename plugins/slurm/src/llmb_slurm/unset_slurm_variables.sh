# Unset the variables that change what commands of Slurm do: with SQUEUE_PARTITION, squeue hides jobs of other partitions,
# with SCANCEL_PARTITION, scancel leaves them running, and with SLURM_CLUSTERS, both query another cluster.
for name in $(compgen -e); do
  case $name in
    SLURM_CONF | SLURM_CONF_SERVER | SLURM_JWT) ;; # without them, no command may find the controller
    SLURM_* | SBATCH_* | SQUEUE_* | SCANCEL_* | SACCT_* | SINFO_*) unset -v "$name" ;;
  esac
done
