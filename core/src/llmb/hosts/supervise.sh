# Runs job.sh in a directory, once, and leaves on disk how it ended, whatever becomes of the one who asked for it.
# Started in a session of its own, holding the submission's lock on descriptor 9, with LLMB_RUN_DIR in its environment
# and in that of all that it starts. A job that tells its ranks another run directory leaves LLMB_DETACHED as it is.
#   started   process id, its start time, the boot it belongs to
#   begun     made by job.sh when it no longer waits for its turn
#   ended     exit status, cause, reason; nothing of the job lives any more
#   alive     locked as long as any process of the job lives
#   arriving  locked until job.sh closes descriptor 7, at the latest by its end: so that another job can wait for that
#   no_grace  made when the job has had its time to end by itself: to be told to end then means to be killed
#   room      what `ended` is written into, in place, where the disk is full by then
directory=$1 time_limit_s=$2 grace_s=$3
cd "$directory" || exit 1

exec 8>>alive
flock -w 10 8 || exit 1 # a twin is alive

job='' job_start='' interrupted='' patience=''
lives() { # as long its process group is the job's
  local now
  [ -n "$job_start" ] && start_time "$job" now && [ "$now" = "$job_start" ]
}

end_job() { # TERM to its processes; KILL when these have had their time, or a second cancel does not grant it
  interrupted=yes
  lives || return
  if [ -e no_grace ]; then
    kill -KILL -- "-$job" 2>/dev/null
    return
  fi
  kill -TERM -- "-$job" 2>/dev/null
  [ -n "$patience" ] || later no_grace sleep "$grace_s"
  patience=yes
}

later() { # file, command: after the command the file is made, and the job is told to end
  (
    "${@:2}" && [ "$(supervisor .)" = $$ ] && { : >"$1"; kill -TERM $$; }
  ) 8>&- &
  disown $! # nothing is said when it is ended
}

keep_end() { # exit status, cause, reason: a full disk is told beside the reason
  local reason=${3//[[:cntrl:]]/ } said
  said=$(write ended "$1"$'\t'"$2"$'\t'"$reason" 2>&1) && return
  reason="${reason:+${reason:0:800}; }$directory: ${said##*: }"
  printf '%s\t%s\t%s\n' "$1" "$2" "$reason" 1<>room && sync room && mv room ended
} 2>/dev/null

trap end_job TERM INT HUP
exec 7>arriving && flock 7 || exit 1
start_time $$ own_start
write started "$$ $own_start $(</proc/sys/kernel/random/boot_id)" || exit 1
exec 9>&-
printf '%4096s' '' | tr ' ' '\n' >room # line ends, of which none is left at the end of what is read

out_of_memory_kills() { sed -n 's/^oom_kill //p' /proc/vmstat; }
kills_before=$(out_of_memory_kills)

set -m # the job and the clock are process groups of their own
if [ -e cancelled ]; then (exit 143) & else bash job.sh & fi
job=$!
exec 7>&-
start_time "$job" job_start
[ -z "$interrupted" ] || end_job
wait_for_its_time() {
  until [ -e begun ]; do sleep 0.5; done # waiting for its turn does not count
  sleep "$time_limit_s"
}
[ "$time_limit_s" = 0 ] || later timed_out wait_for_its_time

interrupted=yes
while [ -n "$interrupted" ]; do # a signal ends a wait, not the job
  interrupted=''
  wait "$job"
  status=$?
  if [ -z "$interrupted" ] && lives; then sleep 1 && interrupted=yes; fi # it was stopped, and may go on
done
job_start=''
reason=''
if [ -s failed ]; then
  reason=$(<failed)
elif [ "$status" -gt 128 ]; then
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
# where there is no room at all the end is kept until there is some, unless nobody waits for it any more
until keep_end "$status" "$cause" "$reason" || [ ! -e alive ] || [ -e cancelled ]; do sleep 1; done
rm -f room
