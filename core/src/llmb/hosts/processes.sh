# What both sides of a detached job need: those who ask for it, and supervise.sh, which runs it.

# A job is asked after several times a second, beside it: what is asked for each time starts no process.

start_time() { # process id, variable: when it started, in clock ticks after boot; fails where it is not there, or dead
  local stat=''
  { IFS= read -r -d '' stat <"/proc/$1/stat"; } 2>/dev/null # a name may have several lines
  [ -n "$stat" ] || return 1
  set -- "$2" ${stat##*) }
  [ "$2" != Z ] && printf -v "$1" %s "${21}" # a container's first process may leave the dead lying about
}

supervisor() { # directory: its supervisor's process id, if that is still the same process
  local pid start boot now
  { read -r pid start boot <"$1/started"; } 2>/dev/null && read -r now </proc/sys/kernel/random/boot_id || return 1
  [ "$boot" = "$now" ] && start_time "$pid" now && [ "$start" = "$now" ] && echo "$pid"
}

end_leftovers() { # directory, as an absolute path: all processes that were started for it, but not the one that asks
  local file look found
  for look in 1 2 3 4 5; do # what was started while others were ended is found by the next look
    found=''
    for file in $(grep -lzxF -e "LLMB_RUN_DIR=$1" -e "LLMB_DETACHED=$1" /proc/[0-9]*/environ 2>/dev/null); do
      file=${file#/proc/}
      [ "${file%%/*}" = $$ ] || ! kill -KILL "${file%%/*}" 2>/dev/null || found=yes
    done
    [ -n "$found" ] || return 0
  done
}

last_line() { tail -n 1 "$1" 2>/dev/null | tr -d '\n' | tr '[:cntrl:]' ' '; } # file

forget_secrets() { rm -f "$1"/.secrets "$1"/..secrets.*.partial; } # directory

write() { # file, text: the whole file or none
  printf '%s\n' "$2" >"$1.partial" && sync "$1.partial" && mv "$1.partial" "$1" && return
  rm -f "$1.partial"
  return 1
}
