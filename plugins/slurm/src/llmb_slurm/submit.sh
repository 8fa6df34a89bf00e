# Functions by which jobs are submitted. In a job's directory:
#   intended  made before sbatch is asked; without job_id beside it, the queue has to tell whether it was
#   job_id    what sbatch answered
#   claim     a symbolic link, made by the job that works there, to that job's id

in_queue() { # mark: the id of the job that carries it, if there is one; fails where the queue cannot be asked
  local queue id state comment
  queue=$(squeue --me -a -h -t all -O 'JobID:.0|,State:|,Comment:|') || return 1
  while IFS='|' read -r id state comment; do
    [ "${comment%|}" = "$1" ] && echo "$id" && return
  done <<<"$queue"
  return 0
}

alive() { # job id: fails where it has ended, or is not known any more
  case $(squeue -a -h -t all -j "$1" -O State:.0 2>/dev/null) in
    PENDING | RUNNING | COMPLETING | CONFIGURING | SUSPENDED | STOPPED | RE* | SIGNALING | STAGE_OUT) return 0 ;;
  esac
  return 1
}

lock() { # directory: until the next one is locked; where the file system has no locks, the jobs' own claims must do
  local status
  mkdir -p "$1" && exec 9>>"$1/.submit" || exit 1
  flock -w 120 9
  status=$?
  if [ $status = 1 ]; then echo "another llmb has been submitting in $1 for 2 minutes" >&2 && exit 1; fi
}

under_way=0 failed=0
start() { # as submit; several beside one another, since sbatch mostly waits for the controller
  ((under_way < 4)) || settle_one
  ((failed == 0)) || return
  submit "$@" &
  ((under_way += 1))
}

settle_one() {
  local status=0
  wait -n || status=$?
  ((under_way -= 1))
  ((failed = status > failed ? status : failed))
}

finish() { # until all have been submitted; exits with the worst of their statuses
  while ((under_way)); do settle_one; done
  exit "$failed"
}

submit() { # id, mark, directory, check or nothing: prints the id, a tab, the job's id, a tab, and why it was refused
  local job='' told
  cd "$3" || exit 1
  if [ -s job_id ]; then
    job=$(<job_id)
  elif [ -L claim ]; then
    job=$(readlink claim)
  elif [ -e intended ]; then
    job=$(in_queue "$2") || cannot_ask 75
  fi
  if [ -n "$job" ] && [ -n "$4" ] && ! alive "$job"; then
    if (eval "$4") >/dev/null 2>&1; then :; else job='' && rm -f job_id claim ended; fi
  fi
  if [ -z "$job" ]; then
    defaults
    : >intended
    if ! job=$(sbatch --parsable job.sh 2>sbatch.err); then
      told=$(<sbatch.err)
      case $told in
        *"nable to contact"* | *unge* | *"onnection refused"*) rm -f intended && cannot_ask 1 ;;
        *"imed out"* | *"onnection"* | *"Zero Bytes"*) cannot_ask 75 ;; # it may have been taken
      esac
      rm -f intended
      printf '%s\t\t%s\n' "$1" "${told//[$'\t\n']/ }"
      return
    fi
    job=${job%%;*}
  fi
  echo "$job" >job_id
  printf '%s\t%s\t\n' "$1" "$job"
}

defaults() { # account and partition from the environment, where the script names none (sbatch prefers the variables)
  local line
  export SBATCH_ACCOUNT=$account SBATCH_PARTITION=$partition
  while read -r line && [[ $line = '#'* ]]; do
    case $line in
      '#SBATCH --account='*) SBATCH_ACCOUNT='' ;;
      '#SBATCH --partition='*) SBATCH_PARTITION='' ;;
    esac
  done <job.sh
  [ -n "$SBATCH_ACCOUNT" ] || unset SBATCH_ACCOUNT
  [ -n "$SBATCH_PARTITION" ] || unset SBATCH_PARTITION
}

cannot_ask() { # exit status
  [ -z "${told-}" ] || echo "$told" >&2
  exit "$1"
}
