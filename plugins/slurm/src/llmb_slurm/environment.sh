# Only what a login gives goes into the jobs: sbatch hands over all of its environment, secrets too, and variables of
# Slurm's own would change what is asked for.
account=${SBATCH_ACCOUNT:-${SLURM_ACCOUNT:-}} partition=${SBATCH_PARTITION:-${SLURM_PARTITION:-}}
for name in $(compgen -e); do
  case $name in
    PATH | HOME | USER | LOGNAME | SHELL | LANG | LC_* | TZ | LD_LIBRARY_PATH | SLURM_CONF) ;;
    MODULEPATH | MODULESHOME | XDG_* | ENROOT_* | *_proxy | *_PROXY) ;;
    *) unset -v "$name" ;;
  esac
done
