# Wait for this job's turn on the machine and for free GPUs. Jobs queue by number, first come, first served. Every
# lock is an flock, which the kernel releases when the last process that holds it is gone. A lock file names the
# directory of the last job that held it. Set above: lock, max_parallel, machine_gpus (all indices), gpus_wanted.
. ./detached.sh # supervisor_pid and end_lost_job

held=() descriptors=()

# create_shared FILE: create a lock file that other users can write, because they take the same locks.
create_shared() {
  [ -e "$1" ] || (umask 0 && : >>"$1")
  [ -w "$1" ] && return
  record_failure "cannot write the lock $1; set target.lock to another file, or make it writable"
  exit 1
}

# try_lock FILE OPTION...: lock a file. The options of flock limit the wait.
try_lock() {
  local descriptor
  create_shared "$1"
  exec {descriptor}>>"$1" || exit 1
  if flock "${@:2}" "$descriptor"; then held+=("$1") && descriptors+=("$descriptor") && return; fi
  exec {descriptor}>&-
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

# acquire COUNT FILE...: wait until this job holds the locks of COUNT of the files.
acquire() {
  local wanted=$1 file flock_options=(-n)
  shift
  (($# > wanted)) || flock_options=(-w 3) # with no choice between files, let flock wait
  until
    for file; do
      ((wanted == 0)) || is_held "$file" || ! try_lock "$file" "${flock_options[@]}" || ((wanted -= 1))
    done
    ((wanted == 0))
  do
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
    [ -O "$before/started" ] && ! [ -e "$before/ended" ] && ! supervisor_pid "$before" >/dev/null || continue
    # a job in another container seems to have no supervisor either, but its processes are not visible here
    ! grep -qzxF "LLMB_RUN_DIR=$before" /proc/[0-9]*/environ 2>/dev/null || end_lost_job "$before"
  done
}

turn=1 turn_lock=''

# enter_queue: take the number after the highest one. A job locks the file of its number as long as it waits.
enter_queue() {
  local queue file
  await_predecessor
  create_shared "$lock.queue"
  exec {queue}>>"$lock.queue" && flock "$queue" || exit 1
  for file in "$lock".turn-*; do
    [ ! -e "$file" ] || ((${file##*-} < turn)) || turn=$((${file##*-} + 1))
  done
  create_shared "$lock.turn-$turn"
  exec {turn_lock}>>"$lock.turn-$turn" && flock "$turn_lock" || exit 1
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
  local other
  for ((other = turn - 1; other > 0; other--)); do
    [ ! -e "$lock.turn-$other" ] || { flock -s "$lock.turn-$other" true && rm -f "$lock.turn-$other"; } || exit 1
  done
}

slots=("$lock")
for ((slot = 1; slot < max_parallel; slot++)); do slots+=("$lock.$slot"); done
mkdir -p "$(dirname "$lock")"
enter_queue
await_turn
acquire 1 "${slots[@]}"
acquire "$gpus_wanted" "${machine_gpus[@]/#/$lock.gpu-}"
rm -f "$lock.turn-$turn"
exec {turn_lock}>&-

gpus=''
for file in "${held[@]}"; do
  [[ $file != "$lock".gpu-* ]] || gpus+=${gpus:+,}${file#"$lock.gpu-"}
  if { read -r before <"$file"; } 2>/dev/null; then remove_container_of "$before" || exit 1; fi
  echo "$LLMB_RUN_DIR" >"$file"
done
: >begun
