# Commands of the scheduler. Replace them by those of yours.
# Files in the directory of a job:
#   pid        the script's process id, which is the id of its session too
#   alive      locked while a process of the job is alive
#   exit_code  written when the script exits
#   cancelled  exists if the job was cancelled
#   timed_out  exists if the time limit has ended the job

# submit DIRECTORY [again]: start job.sh, unless it was submitted before. With "again", also start a job that has ended.
submit() {
  (
    cd "$1" && exec 9>>submit && flock 9 || exit 1 # one submission at a time
    exec 8>>alive || exit 1
    flock -w 1 8 || exit 0 # a poll holds the lock for a moment only, a job until it ends
    if [ -e pid ]; then
      [ -n "${2-}" ] || { rm -f .secrets && exit 0; }
      rm -f pid exit_code failed cancelled timed_out
    fi
    setsid bash job.sh >out.log 2>&1 </dev/null 9>&- &
    echo $! >pid
  )
}

# poll ID DIRECTORY: print id, state, exit code and reason, separated by tabs.
poll() {
  local state=ABSENT code='' reason=''
  if [ ! -e "$2/pid" ]; then
    :
  elif ! flock -n -s "$2/alive" true; then
    state=RUNNING
  else
    { read -r code <"$2/exit_code"; read -r reason <"$2/failed"; } 2>/dev/null
    if [ -e "$2/cancelled" ]; then state=CANCELLED
    elif [ -e "$2/timed_out" ]; then state=TIMEOUT
    elif [ -z "$code" ]; then state=LOST
    elif [ "$code" = 0 ]; then state=DONE
    else state=FAILED
    fi
  fi
  printf '%s\t%s\t%s\t%s\n' "$1" "$state" "$code" "$reason"
}

# cancel DIRECTORY: send SIGTERM to all processes of a job. The second call sends SIGKILL.
cancel() {
  local pid signal=TERM
  { read -r pid <"$1/pid"; } 2>/dev/null && ! flock -n -s "$1/alive" true || return 0
  [ ! -e "$1/cancelled" ] || signal=KILL
  : >"$1/cancelled"
  pkill "-$signal" -s "$pid" || [ $? = 1 ] # 1: no process is left
}
