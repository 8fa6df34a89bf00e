# Functions by which jobs are submitted. In a job's directory:
#   job_id  sbatch's answer, written by sbatch itself; while it is empty, the queue has to tell whether there is a job
#   claim   a symbolic link, made by the job that works there, to that job's id

in_queue() { # mark: the id of the job that carries it, if there is one; fails where the queue cannot be asked
  local queue id state comment
  queue=$(squeue --me -a -h -t all -O 'JobID:.0|,State:|,Comment:|') || return 1
  while IFS='|' read -r id state comment; do
    [ "${comment%|}" = "$1" ] && echo "$id" && return
  done <<<"$queue"
  return 0
}

ended='|BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|REVOKED|TIMEOUT'
alive() { # job id: 1 where it has ended, or is not known any more; 75 where one cannot ask
  local states
  if states=$(squeue -a -h -t all -j "$1" -O State:.0 2>squeue.err); then
    grep -qvxE "$ended" <<<"$states"
  elif grep -q "Invalid job id" squeue.err; then
    return 1
  else
    return 75
  fi
}

made() { # job id, check: whether that job makes what the check asks for, or it is there; exits where one cannot know
  local status=0
  alive "$1" || status=$?
  if [ $status = 0 ] || (eval "$2") >/dev/null 2>&1; then return; fi
  [ $status != 75 ] && return 1
  printf '%s\n' "squeue does not tell of job $1" "$(<squeue.err)" >&2
  exit 75
}

lock() { # directory: until the next one is locked; where the file system has no locks, the jobs' own claims must do
  local status
  mkdir -p "$1" && exec 9>>"$1/.submit" || exit 1
  flock -w 120 9
  status=$?
  if [ $status = 1 ]; then echo "another llmb has been submitting in $1 for 2 minutes" >&2 && exit 1; fi
}

defaults() { # account or nothing, partition or nothing: which of both come from the environment, for what follows
  unset SBATCH_ACCOUNT SBATCH_PARTITION # sbatch would prefer them to what a script says
  if [ -n "$1" ] && [ -n "$account" ]; then export SBATCH_ACCOUNT=$account; fi
  if [ -n "$2" ] && [ -n "$partition" ]; then export SBATCH_PARTITION=$partition; fi
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
  local job=''
  cd "$3" || exit 1
  if [ -e job_id ] || [ -L claim ]; then
    job=$(submitted "$2") || exit 75
    if [ -n "$job" ] && [ -n "$4" ] && ! made "$job" "$4"; then
      job='' && rm -f job_id claim ended missing # a task that is not done, and that nobody makes
    fi
  fi
  if [ -z "$job" ]; then
    if ! sbatch --parsable job.sh >job_id 2>sbatch.err; then
      refused "$1"
      return
    fi
    read -r job <job_id
    job=${job%%;*} # a cluster's name may stand behind it
  fi
  printf '%s\t%s\t\n' "$1" "$job"
}

submitted() { # mark: the job that was submitted here before, if it was; fails where one cannot know
  local job=''
  if [ -s job_id ]; then
    job=$(<job_id)
  elif [ -L claim ]; then
    job=$(readlink claim)
  else
    job=$(in_queue "$1") || return 1
  fi
  job=${job%%;*}
  if [ -n "$job" ] && [ ! -s job_id ]; then echo "$job" >job_id; fi
  echo "$job"
}

refused() { # id: what sbatch said; where that is no refusal, nothing more is submitted
  local told
  told=$(<sbatch.err)
  case $told in
    *"nable to contact"* | *unge* | *"onnection refused"* | *"configuration source"*) rm -f job_id && echo "$told" >&2 && exit 1 ;;
    *"imed out"* | *"onnection"* | *"Zero Bytes"*) echo "$told" >&2 && exit 75 ;; # it may have been taken
  esac
  rm -f job_id
  printf '%s\t\t%s\n' "$1" "${told//[[:cntrl:]]/ }"
}
