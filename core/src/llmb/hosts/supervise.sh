#!/usr/bin/env bash
# Runs job.sh in a directory, once, and leaves on disk how it ended, whatever becomes of the one who asked for it.
# Started in a session of its own, holding the submission's lock on descriptor 9.
#   started   process id, its start time, the boot it belongs to
#   begun     made by job.sh when it no longer waits for its turn
#   ended     exit status, cause, reason
#   alive     locked as long as any process of the job lives
directory=$1 time_limit_s=$2
cd "$directory" || exit 1
export LLMB_RUN_DIR=$directory

exec 8>>alive
flock -w 10 8 || exit 1 # a twin is alive

write() { printf '%s\n' "$2" >"$1.partial" && sync "$1.partial" && mv "$1.partial" "$1"; }
start_time() { local stat; stat=$(<"/proc/$1/stat") && set -- ${stat##*) } && echo "${20}"; }
out_of_memory_kills() { sed -n 's/^oom_kill //p' /proc/vmstat; }
write started "$$ $(start_time $$) $(</proc/sys/kernel/random/boot_id)"
exec 9>&-

kills_before=$(out_of_memory_kills)
set -m # the job and the clock are process groups of their own
if [ -e cancelled ]; then (exit 143) & else bash job.sh & fi
job=$!
end_job() { kill -TERM -- "-$job" 2>/dev/null; }
trap end_job TERM INT HUP
if [ "$time_limit_s" -gt 0 ]; then
  (sleep "$time_limit_s" && : >timed_out && kill -TERM $$) 8>&- &
  clock=$!
fi

status=0
while kill -0 "$job" 2>/dev/null; do # a trapped signal interrupts wait
  wait "$job"
  status=$?
done
[ -n "${clock-}" ] && kill -KILL -- "-$clock" 2>/dev/null

cause=failed reason=
[ -s failed ] && reason=$(<failed)
if [ -e cancelled ]; then
  cause=cancelled
elif [ -e timed_out ]; then
  cause=timeout
elif [ "$status" = 0 ]; then
  cause=completed
elif [ "$(out_of_memory_kills)" != "$kills_before" ] && [[ $status = 137 || $reason = *137* ]]; then
  cause="out of memory"
fi
write ended "$status"$'\t'"$cause"$'\t'"$reason"
