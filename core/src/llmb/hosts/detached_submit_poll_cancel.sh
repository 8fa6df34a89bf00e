# Functions that submit, poll and cancel detached jobs. detached_job_supervisor.sh lists the files of a job's directory.

# any_alive DIRECTORY: check whether any process of the job is alive.
any_alive() { ! flock -n -s "$1/alive" true; }

# submit DIRECTORY LIMIT_S GRACE_S [again]: start a job unless it was started before. With "again", also start a job
# that has ended. LIMIT_S is the time limit in seconds, or 0.
submit() {
  (
    cd "$1" || exit 1
    [ -O . ] || { echo "$1 on $(uname -n) belongs to another user; remove it, or set target.workdir to another directory" >&2 && exit 1; }
    chmod go-w . && exec 9>>submit && flock 9 || exit 1
    # the supervisor of a job that has ended may still exit; the next one waits for it
    if [ ! -e ended ] && any_alive .; then exit 0; fi
    if [ -e started ]; then
      [ "$4" = again ] || { forget_secrets . && exit 0; }
      rm -f started queued begun time_limit ended failed cancelled timed_out no_grace
    fi
    LLMB_DETACHED=$1 LLMB_RUN_DIR=$1 setsid bash -p supervise.sh "$1" "$2" "$3" >out.log 2>&1 </dev/null &
  )
}

# last_output LOG: print the last line of a log, or the last 4 kB of it, from the beginning of a word: a part of a word may
# be the part of a secret, which no mask recognizes. A progress bar returns to the start of its line.
last_output() {
  local end
  end=$(tail -c 4000 "$1" 2>/dev/null | tr '\r' '\n')
  if [[ $end == *$'\n'* ]] || [ "$(stat -c %s "$1")" -le 4000 ]; then
    printf '%s\n' "${end##*$'\n'}"
  elif [[ $end == *' '* ]]; then
    printf '%s\n' "${end#* }"
  fi
}

# poll ID DIRECTORY: print id, state, process id, exit code, cause, reason and the seconds until the time limit, separated
# by tabs. The reason of a job that has not ended is why it waits, or its last output.
poll() {
  local pid='' state=absent limit='' now left='' ended='' output=''
  # a submission holds its lock until the supervisor has written `started`
  [ ! -d "$2" ] || [ -e "$2/started" ] || flock -s -w 30 "$2/submit" true || exit 1
  if { read -r pid _ <"$2/started"; } 2>/dev/null; then
    supervisor_pid "$2" >/dev/null || end_lost_job "$2" || exit 1
    state=pending
    [ -e "$2/begun" ] && state=running
    { IFS= read -r ended <"$2/ended"; } 2>/dev/null && state=ended
    { [ "$state" = running ] && read -r limit <"$2/time_limit"; } 2>/dev/null
    if [[ $limit =~ ^[1-9][0-9]{0,15}$ ]]; then # bash would run commands in other text, and the job can write the file
      printf -v now '%(%s)T' -1 && left=$((limit - now))
    fi
    if [ "$state" = ended ]; then :; elif [ -e "$2/cancelled" ]; then
      output='being cancelled'
    elif [ "$state" = pending ] && { IFS= read -r output <"$2/queued"; } 2>/dev/null; then :
    elif [ -s "$2/out.log" ]; then
      output=$(last_output "$2/out.log")
    fi
  fi
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$state" "$pid" "${ended:-$'\t\t'${output//[[:cntrl:]]/ }}" "$left"
}

# end_lost_job DIRECTORY: if the supervisor of a job was killed, end the rest of the job and record its end.
end_lost_job() {
  (
    cd "$1" && exec 9>>submit && flock 9 || exit 1 # prevents a concurrent submission
    [ ! -e started ] || [ -e ended ] || supervisor_pid . >/dev/null && exit 0
    end_leftovers "$1"
    forget_secrets .
    if [ -e cancelled ]; then write_atomically ended $'\tcancelled\t' && exit; fi
    write_atomically ended $'\tlost\tthe process that ran the job was killed, or the machine was restarted'
  )
}

# cancel DIRECTORY: cancel a job, also one that is not submitted yet. The second call grants no grace.
cancel() {
  local pid
  mkdir -p "$1" || exit 1
  [ ! -e "$1/ended" ] || return 0
  [ ! -e "$1/cancelled" ] || : >"$1/no_grace" || exit 1
  : >"$1/cancelled" || exit 1
  forget_secrets "$1"
  pid=$(supervisor_pid "$1") || return 0
  kill -TERM "$pid" || ! supervisor_pid "$1" >/dev/null || exit 1 # it may have ended meanwhile
}
