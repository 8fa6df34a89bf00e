# Run job.sh of a directory once and keep on disk how it ended, independent of the process that submitted it. The
# caller starts this script in a session of its own, holds the submission lock on descriptor 9, and sets LLMB_RUN_DIR
# and LLMB_DETACHED, which all processes of the job inherit. A job may give its ranks another LLMB_RUN_DIR;
# LLMB_DETACHED stays. Files of the directory:
#   started   process id of this supervisor, its start time, boot id
#   queued    why job.sh waits before it creates `begun`; written by job.sh, if at all
#   begun     created by job.sh when its turn has come; the time limit counts from here
#   time_limit  when the time limit ends the job, in seconds since 1970
#   ended     exit code, cause, reason; exists only if no process of the job is alive
#   alive     locked while any process of the job is alive
#   arriving  locked until job.sh closes descriptor 7, at the latest until it ends; the next job waits for this lock
#   no_grace  exists if the grace period is over; from then on SIGTERM to the supervisor kills the job
#   room      preallocated space for `ended`, used if the disk is full
#   space     written and removed before `ended`, to see whether the disk is full
directory=$1 time_limit_s=$2 grace_s=$3
cd "$directory" || exit 1

exec 8>>alive
flock -w 10 8 || exit 1 # another instance is running

room_size=131072 # btrfs needs 128 KiB to create and rename a file
job='' job_start='' interrupted='' grace_granted=''

# job_alive: check whether the job's process group still belongs to the job.
job_alive() {
  local now
  [ -n "$job_start" ] && start_time "$job" now && [ "$now" = "$job_start" ]
}

# end_job: handle a signal. Send SIGTERM to the job, or SIGKILL once `no_grace` exists.
end_job() {
  interrupted=yes
  job_alive || return
  if [ -e no_grace ]; then
    kill -KILL -- "-$job" 2>/dev/null
    return
  fi
  kill -TERM -- "-$job" 2>/dev/null
  [ -n "$grace_granted" ] || signal_later no_grace sleep "$grace_s"
  grace_granted=yes
}

# signal_later FILE COMMAND...: run a command in the background, then create a file and signal this supervisor.
signal_later() {
  (
    "${@:2}" && [ "$(supervisor_pid .)" = $$ ] && { : >"$1"; kill -TERM $$; }
  ) 8>&- &
  disown $! # bash prints nothing when this process is killed
}

# write_end EXIT_CODE CAUSE REASON: write `ended`. If the disk is full, use `room` and add that to the reason. A disk is
# also full if it has only space for `ended`, because the job could not write its log.
write_end() {
  local end=$1$'\t'$2$'\t' reason=${3//[[:cntrl:]]/ } error
  error=$({ head -c "$room_size" /dev/zero >space && rm space && write_atomically ended "$end$reason"; } 2>&1) && return
  rm -f space
  end+="${reason:+${reason:0:800}; }$directory: ${error##*: }"
  printf '%s\n' "$end" 1<>room && sync room && mv room ended && return
  rm -f room # a file system that copies on write cannot overwrite, but it can remove
  write_atomically ended "$end"
} 2>/dev/null

trap end_job TERM INT HUP
exec 7>arriving && flock 7 || exit 1
start_time $$ own_start
write_atomically started "$$ $own_start $(</proc/sys/kernel/random/boot_id)" || exit 1
exec 9>&-
# newlines, which a reader of `ended` strips
head -c "$room_size" /dev/zero | tr '\0' '\n' >room

# The control group of the job, version 2 and 1. The root group counts the kills of other programs, so it is left out.
memory_counters=$(sed -nE 's|^0::(/.*)|\1/memory.events|p
  s|^[0-9]+:(.*,)?memory(,.*)?:(/.+)|/memory\3/memory.oom_control|p' /proc/self/cgroup)

# out_of_memory_kills: print how many processes of the job's control group the kernel killed for lack of memory.
out_of_memory_kills() {
  local file
  while IFS= read -r file; do sed -n 's/^oom_kill //p' "/sys/fs/cgroup$file"; done < <(echo "$memory_counters")
} 2>/dev/null
kills_before=$(out_of_memory_kills)

set -m # the job and the timers get process groups of their own
if [ -e cancelled ]; then (exit 143) & else bash -p job.sh & fi
job=$!
exec 7>&- 2>/dev/null # bash would report in the log of the job that a signal ended it, as `ended` does
start_time "$job" job_start
[ -z "$interrupted" ] || end_job
await_time_limit() {
  local now
  until [ -e begun ]; do sleep 0.5; done # waiting for its turn does not count
  printf -v now '%(%s)T' -1 && echo $((now + time_limit_s)) 2>/dev/null >time_limit
  sleep "$time_limit_s"
}
[ "$time_limit_s" = 0 ] || signal_later timed_out await_time_limit

interrupted=yes
while [ -n "$interrupted" ]; do # a signal interrupts `wait`, not the job
  interrupted=''
  wait "$job"
  status=$?
  if [ -z "$interrupted" ] && job_alive; then sleep 1 && interrupted=yes; fi # the job was stopped and may continue
done
job_start=''
reason=''
if [ -s failed ]; then
  reason=$(<failed)
elif [ "$status" -gt 128 ] && [ "$status" -le 192 ]; then
  reason="the job's script was killed by signal $((status - 128))"
elif [ "$status" != 0 ]; then
  reason=$(last_line out.log)
fi
end_leftovers "$directory"
forget_secrets .

cause=failed
if [ -e cancelled ]; then
  cause=cancelled
elif [ -e timed_out ]; then
  cause=timeout
elif [ "$status" = 0 ]; then
  cause=completed
elif [ "$(out_of_memory_kills)" != "$kills_before" ] && [[ $status = 137 || $reason = *137* ]]; then
  cause="out of memory"
fi
# If nothing can be written at all, retry until it can, unless the directory is gone or the job was cancelled.
until write_end "$status" "$cause" "$reason" || [ ! -e alive ] || [ -e cancelled ]; do sleep 1; done
rm -f room
