# cancel JOB_ID...: cancel jobs. Exit with 1 if Slurm does not respond. Ignore jobs that have ended or are unknown.
cancel() {
  local error
  error=$(scancel "$@" 2>&1) && return
  case $error in *"nable to contact"* | *"imed out"* | *"onnection"* | *"Zero Bytes"* | *unge* | *"ccess"*) echo "$error" >&2 && exit 1 ;; esac
}
