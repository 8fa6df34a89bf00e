# The environment of sbatch. Keep only variables of a login: sbatch passes its environment to the job, secrets included, and
# SLURM_* and SBATCH_* variables would change the request.
token=${SLURM_JWT-}
export -n token # the user may export a variable of this name
for name in $(compgen -e); do
  case $name in
    PATH | HOME | USER | LOGNAME | SHELL | LANG | LC_* | TZ | LD_LIBRARY_PATH) ;;
    SLURM_CONF | SLURM_CONF_SERVER) ;; # without them, sbatch may not find the controller
    KRB5CCNAME) ;; # the place of Kerberos credentials, which the plugin auks of sbatch forwards to the nodes
    MODULEPATH | MODULESHOME | XDG_* | ENROOT_* | *_proxy | *_PROXY) ;;
    *) unset -v "$name" ;;
  esac
done

# A login without munge authenticates with the token SLURM_JWT. Any other login submits without the token.
if [ -n "$token" ] && ! squeue --me -h >/dev/null 2>&1; then export SLURM_JWT=$token; fi
