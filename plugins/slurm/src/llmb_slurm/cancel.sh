cancel() { # job ids: fails where Slurm cannot be asked; those that have ended, or are known no more, are left alone
  local told
  told=$(scancel "$@" 2>&1) && return
  case $told in *"nable to contact"* | *"imed out"* | *"onnection"* | *"Zero Bytes"* | *unge* | *"ccess"*) echo "$told" >&2 && exit 1 ;; esac
}
