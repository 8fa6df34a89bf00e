# Functions that submit jobs, each exactly once. Set by submit.py: ended_states. Files of a job's directory:
#   job_id  the output of sbatch, written by sbatch itself; if it contains no id, only the queue knows the job
#   claim   symbolic link to the id of the job that runs there, created by that job

# No here-document: bash may need a file in /tmp for it, which may be full.

# run_sbatch ARGUMENT...: replace this process by sbatch. The job gets its environment without the token, with which any
# srun in the job would fail. Only --export-file keeps a variable SLURM_* from the job, but it also keeps the resource
# limits of the login from the job.
run_sbatch() {
  [ -n "${SLURM_JWT-}" ] || exec sbatch "$@"
  exec sbatch --export-file=<(env -0 --unset=SLURM_JWT) "$@"
}

# in_queue MARK: print the id of the last job with this mark, if any. Fail if squeue gets no answer.
in_queue() {
  squeue --me -a -h -t all -O 'JobID:.0|,Comment:|' |
    awk -F'|' -v mark="$1" 'index($2, mark) && $1 + 0 > last { last = $1 + 0 } END { if (last) print last }'
  [ "${PIPESTATUS[*]}" = '0 0' ]
}

# is_alive JOB_ID ID: return 1 if the job has ended or is unknown, or if its Slurm id now belongs to another job, and 75 if
# squeue gets no answer. A site may change the name of a job and its comment, so each of them identifies the job, and so
# does the directory where it was submitted, which is the current one.
is_alive() {
  local rows state name folder comment
  if rows=$(squeue -a -h -t all -j "$1" -O 'State:|,Name:|,WorkDir:|,Comment:|' 2>squeue.err); then
    while IFS='|' read -r state name folder comment _; do
      [[ ! $state =~ ^($ended_states)$ ]] || continue
      if [ "$name" = "$2" ] || [[ $comment = *"llmb $2 "* ]] || [ "${folder##*/}" = "${PWD##*/}" ]; then return 0; fi
    done < <(echo "$rows")
    return 1
  elif grep -q "Invalid job id" squeue.err; then
    return 1
  else
    return 75
  fi
}

# task_done_or_alive JOB_ID ID CHECK: check whether a task is complete or its job may still complete it. Exit with 75 if
# that is unknown.
task_done_or_alive() {
  local status=0
  is_alive "$1" "$2" || status=$?
  if [ $status = 0 ] || (eval "$3") >/dev/null 2>&1; then return; fi
  [ $status != 75 ] && return 1
  printf '%s\n' "squeue does not report the state of job $1" "$(<squeue.err)" >&2
  exit 75
}

# lock_folder FOLDER: lock a folder until the next call, or exit with 73 if another process holds the lock. On a file
# system without locks, the claims of the jobs must suffice.
lock_folder() {
  local status
  ((failed == 0)) || return
  mkdir -p "$1" || exit 1
  [ -z "$opened" ] || exec {opened}>&-
  open_lock "$1/.submit" || { echo "$lock_error" >&2 && exit 1; }
  flock -w 120 "$opened"
  status=$?
  if [ $status = 1 ]; then
    echo "another llmb has been submitting in $1 for 2 minutes" >&2
    exit 73
  fi
}

# use_login_defaults ACCOUNT PARTITION: set which defaults of the login the next jobs get: "account" and "partition", or
# empty.
use_login_defaults() {
  unset SBATCH_ACCOUNT SBATCH_PARTITION # sbatch prefers them to the directives of a script
  if [ -n "$1" ] && [ -n "$account" ]; then export SBATCH_ACCOUNT=$account; fi
  if [ -n "$2" ] && [ -n "$partition" ]; then export SBATCH_PARTITION=$partition; fi
}

jobs=() failed=0 opened=''
queue_error='' # the message of sbatch about a full queue, which each of the four processes finds out by itself

# add_job ID MARK DIRECTORY CHECK: add a job to the next call of `submit_jobs`.
add_job() {
  jobs+=("$@")
}

# submit_jobs: submit the added jobs with four processes, because sbatch mostly waits for the controller. Submit nothing
# after an error of an earlier call.
submit_jobs() {
  local first pid pids=() status
  ((failed == 0)) || return
  command -v sbatch >/dev/null || { echo "sbatch is not in the PATH of a login on this host" >&2 && exit 1; }
  protect_directories
  for first in 0 1 2 3; do
    submit_every_fourth "$first" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do # `wait -n` would return 127 if a process has ended already
    status=0
    wait "$pid" || status=$?
    ((failed = status > failed ? status : failed))
  done
  jobs=()
}

# protect_directories: exit if the directory of an added job belongs to another user, and prevent others from writing
# there: with a umask of 002, the group could replace files that this user writes.
protect_directories() {
  local at directories=()
  for ((at = 2; at < ${#jobs[@]}; at += 4)); do
    if [ ! -O "${jobs[at]}" ]; then
      echo "${jobs[at]} on $(uname -n) belongs to another user; remove it, or set target.workdir to another directory" >&2
      exit 1
    fi
    directories+=("${jobs[at]}")
  done
  ((${#directories[@]} == 0)) || chmod go-w -- "${directories[@]}" || exit 1
}

# submit_every_fourth FIRST: submit every fourth job, beginning with number FIRST. Exit at the first error. Print answers
# together: one by one, each would become a packet of the connection.
submit_every_fourth() {
  local at
  answers='' # bash 4 has no local variables in the trap if the script is read with `.`
  trap 'printf %s "$answers"' EXIT
  for ((at = 4 * $1; at < ${#jobs[@]}; at += 16)); do # a job is four words
    submit "${jobs[at]}" "${jobs[at + 1]}" "${jobs[at + 2]}" "${jobs[at + 3]}" # a slice would copy the whole array
  done
  exit 0
}

# add_answer LINE: add a line to `answers`. Print the lines before it if all of them have more bytes than a pipe takes in
# one piece: the other processes print at the same time.
add_answer() {
  local LC_ALL=C # the length is in bytes
  if ((${#answers} + ${#1} > 4096)); then
    printf %s "$answers"
    answers=''
  fi
  answers+=$1
}

# submit ID MARK DIRECTORY CHECK: submit a job. Add to `answers` its id, its Slurm id and the reason of a rejection,
# separated by tabs.
submit() {
  local job='' error='' status=0
  cd "$3" >/dev/null || exit 1 # a login may export a function cd that prints
  if [ -e job_id ] || [ -L claim ]; then
    job=$(submitted_before "$2") || exit 75
    if [ -n "$job" ] && [ -n "$4" ] && ! task_done_or_alive "$job" "$1" "$4"; then
      job='' && rm -f job_id claim ended missing # submit the task again
    fi
  fi
  if [ -z "$job" ]; then
    [ -n "$queue_error" ] || error=$(run_sbatch --parsable job.sh 2>&1 >job_id) || status=$?
    if ((status > 128 && status <= 192)); then # the controller may have accepted the job before
      echo "sbatch was killed by signal $((status - 128))" >&2
      exit 75
    fi
    if [ -n "$queue_error" ] || ((status != 0)); then
      rejected "$1" "${error:-$queue_error}"
      return
    fi
    read_job_id job_id
    [ -n "$job" ] || job=$(submitted_before "$2") || exit 75 # a full disk has no room for the id
    [ -n "$job" ] || { echo "sbatch printed no job id, and squeue does not list the job" >&2 && exit 75; }
  fi
  add_answer "$1"$'\t'"$job"$'\t\n'
}

# submitted_before MARK: print the Slurm id of the job that was submitted here, if any. Fail if that is unknown.
submitted_before() {
  local job
  read_job_id job_id
  if [ -z "$job" ]; then
    if [ -L claim ]; then job=$(readlink claim); else job=$(in_queue "$1") || return 1; fi
    [ -z "$job" ] || echo "$job" >job_id
  fi
  echo "$job"
}

# rejected ID MESSAGE: add the message of sbatch to `answers`. Exit if it means that the controller gave no answer.
rejected() {
  case ${2##*"submission failed: "} in # without the site's own messages before it
    *"nable to contact"* | *unge* | *"rotocol auth"* | *"onnection refused"* | *"configuration source"*) rm -f job_id && echo "$2" >&2 && exit 1 ;;
    *"imed out"* | *"onnection"* | *"Zero Bytes"*) echo "$2" >&2 && exit 75 ;; # the controller may have accepted the job
    *"temporarily"*) queue_error=$2 ;; # sbatch tried for two minutes, and would for each other job
  esac
  rm -f job_id
  add_answer "$1"$'\t\t'"${2//[[:cntrl:]]/ }"$'\n'
}
