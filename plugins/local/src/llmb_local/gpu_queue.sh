# Wait for this job's turn on the machine and for free GPUs. Jobs queue by number, first come, first served. Every
# lock is an flock, which the kernel releases when the last process that holds it is gone. A lock file names the
# directory of the last job that held it. Other users may write the locks and add files beside them, so neither a name
# nor a content is trusted. Set above: lock, max_parallel, machine_gpus (all indices), gpus_wanted.
. ./detached.sh # supervisor_pid and end_lost_job

held=() descriptors=()

# open_shared FILE: open a lock file that other users share, as file descriptor $opened.
open_shared() {
  open_lock "$1" && return
  record_failure "$lock_error, or set \`lock = \"/path/to/file\"\` in [target]"
  exit 1
}

# is_mine DIRECTORY: check whether a directory that a lock names belongs to this user.
is_mine() { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; }

# try_lock FILE OPTION...: lock a file. The options of flock limit the wait.
try_lock() {
  open_shared "$1"
  if flock "${@:2}" "$opened"; then held+=("$1") && descriptors+=("$opened") && return; fi
  exec {opened}>&-
  return 1
}

# without_locks COMMAND...: run a command that may outlive the job, so it must not inherit its locks.
without_locks() {
  local descriptor
  for descriptor in "${descriptors[@]}"; do exec {descriptor}>&-; done
  exec "$@"
}

# is_held FILE: check whether this job holds the lock.
is_held() {
  local each
  for each in "${held[@]}"; do [ "$each" != "$1" ] || return 0; done
  return 1
}

# explain_wait REASON: write why this job waits, which a poll reports.
explain_wait() { [ -e queued ] && [ "$(<queued)" = "$1" ] || echo "$1" >queued; } 2>/dev/null

# acquire COUNT REASON FILE...: wait until this job holds the locks of COUNT of the files. REASON is why it waits.
acquire() {
  local wanted=$1 reason=$2 file flock_options=(-n)
  shift 2
  (($# > wanted)) || flock_options=(-w 3) # with no choice between files, let flock wait
  until
    for file; do
      ((wanted == 0)) || is_held "$file" || ! try_lock "$file" "${flock_options[@]}" || ((wanted -= 1))
    done
    ((wanted == 0))
  do
    explain_wait "$reason"
    end_orphans "$@"
    sleep 0.2
  done
}

next_check_s=0

# end_orphans FILE...: end jobs that hold one of these locks although their supervisor was killed.
end_orphans() {
  local file before
  ((SECONDS >= next_check_s)) || return
  next_check_s=$((SECONDS + 3))
  for file; do
    { read -r before <"$file"; } 2>/dev/null || continue
    is_mine "$before" && [ -e "$before/started" ] && ! [ -e "$before/ended" ] && ! supervisor_pid "$before" >/dev/null || continue
    # a job in another container seems to have no supervisor either, but its processes are not visible here
    ! grep -qzxF "LLMB_RUN_DIR=$before" /proc/[0-9]*/environ 2>/dev/null || end_lost_job "$before"
  done
}

turn=1 turn_lock=''

# enter_queue: take the number after the highest one. A job locks the file of its number as long as it waits.
enter_queue() {
  local queue file
  await_predecessor
  open_shared "$lock.queue" && queue=$opened && flock "$queue" || exit 1
  for file in "$lock".turn-*; do
    [[ ${file##*.turn-} =~ ^[1-9][0-9]{0,8}$ ]] || continue # bash would run commands in any other name
    ((${file##*.turn-} < turn)) || turn=$((${file##*.turn-} + 1))
  done
  open_shared "$lock.turn-$turn" && turn_lock=$opened && flock "$turn_lock" || exit 1
  exec {queue}>&-
  echo yes >arriving
  exec 7>&-
}

# await_predecessor: wait until the job that was submitted before this one is in the queue. Skip jobs that never get
# there.
await_predecessor() {
  local before=.
  while read -r before <"$before/after" && [ -n "$before" ]; do
    flock -w 60 -s "$before/submit" true && flock -w 60 -s "$before/arriving" true # it was started, and is in the queue
    [ ! -s "$before/arriving" ] || return
  done 2>/dev/null
}

# await_turn: wait for all jobs with a lower number, however many GPUs they need.
await_turn() {
  local other before
  for ((other = turn - 1; other > 0; other--)); do
    before=$lock.turn-$other
    [ -f "$before" ] || continue # a pipe would block
    flock -n -s "$before" true || explain_wait "$other_jobs"
    flock -s "$before" true && rm -f "$before" || exit 1
  done
}

other_jobs='waits for other jobs'
slots=("$lock")
for ((slot = 1; slot < max_parallel; slot++)); do slots+=("$lock.$slot"); done
mkdir -p "$(dirname "$lock")"
enter_queue
await_turn
acquire 1 "$other_jobs" "${slots[@]}"
acquire "$gpus_wanted" 'waits for free GPUs' "${machine_gpus[@]/#/$lock.gpu-}"
rm -f "$lock.turn-$turn" queued
exec {turn_lock}>&-

gpus='' # in the order of the machine, so that local rank 0 has the first
for number in "${machine_gpus[@]}"; do ! is_held "$lock.gpu-$number" || gpus+=${gpus:+,}$number; done
for number in "${!held[@]}"; do
  file=${held[number]}
  if { read -r before <"$file"; } 2>/dev/null; then
    ! is_mine "$before" || supervisor_pid "$before" >/dev/null || remove_container_of "$before" || exit 1
  fi
  echo "$LLMB_RUN_DIR" >"/proc/self/fd/${descriptors[number]}" # the file that is locked, whatever has its name now
done
: >begun
