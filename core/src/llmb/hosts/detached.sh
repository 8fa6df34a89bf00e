# Functions by which detached jobs are submitted, polled and cancelled; see supervise.sh for the files.

anything_lives() { ! flock -n -s "$1/alive" true; } # directory

submit() { # directory, seconds of time limit (0: none) and of grace, again (or nothing): anew when it has ended
  (
    cd "$1" && exec 9>>submit && flock 9 || exit 1
    if anything_lives .; then exit 0; fi
    if [ -e started ]; then
      [ "$4" = again ] || { forget_secrets . && exit 0; }
      rm -f started begun ended failed cancelled timed_out no_grace
    fi
    LLMB_DETACHED=$1 LLMB_RUN_DIR=$1 setsid bash supervise.sh "$1" "$2" "$3" >out.log 2>&1 </dev/null &
  )
}

poll() { # id, directory: id, state, process id, exit status, cause, reason (or what it said last), between tabs
  local pid='' state=absent ended='' said=''
  # a submission holds its lock until the process is there to be seen
  [ ! -d "$2" ] || [ -e "$2/started" ] || flock -s -w 30 "$2/submit" true || exit 1
  if { read -r pid _ <"$2/started"; } 2>/dev/null; then
    supervisor "$2" >/dev/null || settle "$2" || exit 1
    state=pending
    [ -e "$2/begun" ] && state=running
    { IFS= read -r ended <"$2/ended"; } 2>/dev/null && state=ended
    if [ "$state" = ended ]; then :; elif [ -e "$2/cancelled" ]; then
      said='being cancelled'
    elif [ -s "$2/out.log" ]; then
      said=$(tail -c 200 "$2/out.log" 2>/dev/null)
    fi
    said=${said##*$'\n'}
  fi
  printf '%s\t%s\t%s\t%s\n' "$1" "$state" "$pid" "${ended:-$'\t\t'${said//[[:cntrl:]]/ }}"
}

settle() { # directory: of a supervisor that was killed, note the end, and end what it left behind
  (
    cd "$1" && exec 9>>submit && flock 9 || exit 1 # so that nobody submits it anew meanwhile
    [ ! -e started ] || [ -e ended ] || supervisor . >/dev/null && exit 0
    end_leftovers "$1"
    forget_secrets .
    if [ -e cancelled ]; then write ended $'\tcancelled\t' && exit; fi
    write ended $'\tlost\tthe process that ran it was killed, or the machine was restarted'
  )
}

cancel() { # directory; one that is about to be submitted will end at once, one that was told before is killed
  local pid
  mkdir -p "$1" || exit 1
  [ ! -e "$1/ended" ] || return 0
  [ ! -e "$1/cancelled" ] || : >"$1/no_grace" || exit 1
  : >"$1/cancelled" || exit 1
  forget_secrets "$1"
  pid=$(supervisor "$1") || return 0
  kill -TERM "$pid" || ! supervisor "$1" >/dev/null || exit 1 # it may have ended meanwhile
}
