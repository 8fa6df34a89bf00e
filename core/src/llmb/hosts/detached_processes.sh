# Functions of both sides of a detached job: detached_submit_poll_cancel.sh, which queries it, and
# detached_job_supervisor.sh, which runs it.

# Jobs are polled several times a second on the machine that they run on, so a poll of a live job starts no process.

# start_time PID VARIABLE: set VARIABLE to the start time of a process in clock ticks after boot. Fail if it is dead.
start_time() {
  local stat=''
  { IFS= read -r -d '' stat <"/proc/$1/stat"; } 2>/dev/null # a process name may contain newlines
  [ -n "$stat" ] || return 1
  # shellcheck disable=SC2086 # several words
  set -- "$2" ${stat##*) }
  [ "$2" != Z ] && printf -v "$1" %s "${21}" # the init process of a container may not reap zombies
}

# supervisor_pid DIRECTORY: print the process id of a supervisor. Fail if that process is gone or its id was reused.
supervisor_pid() {
  local pid start boot now
  { read -r pid start boot <"$1/started"; } 2>/dev/null && read -r now </proc/sys/kernel/random/boot_id || return 1
  [ "$boot" = "$now" ] && start_time "$pid" now && [ "$start" = "$now" ] && echo "$pid"
}

# end_leftovers DIRECTORY: kill all processes of a job except the calling one. DIRECTORY must be absolute.
end_leftovers() {
  local file round found
  for round in 1 2 3 4 5; do # a later round finds processes that were started during an earlier one
    found=()
    # shellcheck disable=SC2013 # the paths contain no spaces
    for file in $(grep -lzxF -e "LLMB_RUN_DIR=$1" -e "LLMB_DETACHED=$1" /proc/[0-9]*/environ 2>/dev/null); do
      file=${file#/proc/}
      [ "${file%%/*}" = $$ ] || found+=("${file%%/*}")
    done
    kill_parents_first "${found[@]}" || return 0
  done
}

# kill_parents_first PID...: kill processes, each before its children: a shell prints that its child was killed, which
# the log of the job would then contain. Fail if all of the processes have ended already.
kill_parents_first() {
  local pid stat fields first killed=1
  local -A parents=()
  for pid; do
    stat=''
    { IFS= read -r -d '' stat <"/proc/$pid/stat"; } 2>/dev/null
    # shellcheck disable=SC2206 # several words
    fields=(${stat##*) })
    parents[$pid]=${fields[1]-0}
  done
  while ((${#parents[@]} > 0)); do
    first=()
    for pid in "${!parents[@]}"; do [ -n "${parents[${parents[$pid]}]-}" ] || first+=("$pid"); done
    ((${#first[@]} > 0)) || first=("${!parents[@]}") # ids were used again meanwhile
    kill -KILL "${first[@]}" 2>/dev/null && killed=0
    for pid in "${first[@]}"; do unset "parents[$pid]"; done
  done
  return $killed
}

# last_line FILE: print the last line without control characters and without a progress bar before it.
last_line() {
  tail -n 1 "$1" 2>/dev/null | tr '\r' '\n' | grep . | tail -n 1 | tr -d '\n' | tr '[:cntrl:]' ' '
}

# forget_secrets DIRECTORY: remove the secrets of a job.
forget_secrets() { rm -f "$1"/.secrets "$1"/..secrets.*.partial; }

# write_atomically FILE TEXT: replace a file atomically.
write_atomically() {
  printf '%s\n' "$2" >"$1.partial" && sync "$1.partial" && mv "$1.partial" "$1" && return
  rm -f "$1.partial"
  return 1
}
