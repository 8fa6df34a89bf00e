# Functions by which detached jobs are submitted, polled and cancelled; see supervise.sh for the files.

same_process() { # process id, start time, boot: is it still that process?
  local stat
  [ "$3" = "$(</proc/sys/kernel/random/boot_id)" ] || return 1
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  set -- "$2" ${stat##*) }
  [ "$1" = "${21}" ]
}

supervisor_lives() { # directory
  local pid start boot
  { read -r pid start boot <"$1/started"; } 2>/dev/null && same_process "$pid" "$start" "$boot" && echo "$pid"
}

anything_lives() { ! flock -n -s "$1/alive" true; } # directory

end_leftovers() { # directory: what a killed supervisor left behind, known by its environment
  local file
  for file in $(grep -lzxF "LLMB_RUN_DIR=$1" /proc/[0-9]*/environ 2>/dev/null); do
    file=${file#/proc/}
    [ "${file%%/*}" = $$ ] || kill -KILL "${file%%/*}" 2>/dev/null
  done
}

submit() { # directory, time limit in seconds (0: none), again (or nothing): submit it anew when it has ended
  (
    cd "$1" || exit 1
    exec 9>>submit
    flock 9
    if anything_lives .; then exit 0; fi
    if [ -e started ]; then
      [ "$3" = again ] || exit 0
      rm -f started begun ended failed cancelled timed_out
    fi
    setsid bash supervise.sh "$1" "$2" >out.log 2>&1 </dev/null &
  )
}

poll() { # id, directory: id, state, process id, exit status, cause, reason, between tabs
  local pid='' state=absent ended=$'\t\t'
  # a submission holds its lock until the process is there to be seen
  [ -d "$2" ] && [ ! -e "$2/started" ] && flock -s -w 30 "$2/submit" true
  if [ -e "$2/started" ] && [ ! -e "$2/ended" ]; then
    if pid=$(supervisor_lives "$2"); then
      state=pending
      [ -e "$2/begun" ] && state=running
    elif [ ! -e "$2/ended" ]; then
      end_leftovers "$2"
      state=ended ended=$'\tlost\tthe process that ran it was killed, or the machine was restarted'
    fi
  fi
  [ -e "$2/ended" ] && state=ended && ended=$(<"$2/ended")
  printf '%s\t%s\t%s\t%s\n' "$1" "$state" "$pid" "$ended"
}

cancel() { # directory
  local pid
  [ -d "$1" ] && [ ! -e "$1/ended" ] || return 0
  : >"$1/cancelled"
  if pid=$(supervisor_lives "$1"); then kill -TERM "$pid"; fi
}
