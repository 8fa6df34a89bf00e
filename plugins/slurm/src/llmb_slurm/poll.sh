# Functions that query jobs. They change no files except `missing` in a job's directory.

known() { # id, directory: prints the id and, after a tab, the Slurm id of the job submitted there, if known
  local job=''
  { read -r job <"$2/job_id"; } 2>/dev/null || job=$(readlink "$2/claim")
  printf '%s\t%s\n' "$1" "${job%%;*}"
}

queue() { # job ids separated by commas, or empty for all: prints these jobs and all other jobs of the user that have not ended
  echo queue
  squeue --me -a -h -t all -O 'JobID:.0|,State:|,RestartCnt:|,exit_code:|,DerivedEC:|,Comment:|,Reason:|' |
    awk -F'|' -v ids="$1" '
      BEGIN { count = split(ids, each, ","); for (i = 1; i <= count; i++) wanted[each[i]] }
      ids == "" || $1 in wanted || $2 !~ /^(BOOT_F|CANCEL|COMPLETED|DEADL|FAIL|NODE_F|OUT_OF|PREEMPTED|REVOKED|TIMEOUT)/'
  return "${PIPESTATUS[0]}"
}

left() { # id, directory, "missing" if not in the queue: prints id, claim, seconds missing, attempt, `ended`, with tabs between
  local claim attempt='' ended='' since=0
  claim=$(readlink "$2/claim")
  { read -r attempt <"$2/attempt"; } 2>/dev/null
  { read -r ended <"$2/ended"; } 2>/dev/null
  if [ -n "$3" ]; then
    [ -e "$2/missing" ] || : >"$2/missing"
    since=$(($(date +%s) - $(stat -c %Y "$2/missing" || date +%s)))
  else
    rm -f "$2/missing"
  fi
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$claim" "$since" "$attempt" "$ended"
}

accounting() { # job ids separated by commas: prints "rows" and the output of sacct, or "disabled", or "unavailable"
  local output
  if output=$(sacct -X -n -P -j "$1" -o JobIDRaw,State,ExitCode,DerivedExitCode,Reason 2>&1); then
    printf 'rows\n%s\n' "$output"
  elif [[ $output == *disabled* ]]; then
    echo disabled
  else
    echo unavailable
  fi
}
