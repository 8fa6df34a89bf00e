# Functions by which jobs are asked for. Nothing here changes anything but files that llmb itself keeps.

known() { # id, directory: the job that was submitted for it
  local job=''
  { read -r job <"$2/job_id"; } 2>/dev/null || job=$(readlink "$2/claim")
  printf '%s\t%s\n' "$1" "${job%%;*}"
}

queue() { # job ids with commas, or none for all: those jobs of the user, and whatever else of theirs has not ended
  echo queue
  squeue --me -a -h -t all -O 'JobID:.0|,State:|,RestartCnt:|,exit_code:|,DerivedEC:|,Comment:|,Reason:|' |
    awk -F'|' -v ids="$1" '
      BEGIN { count = split(ids, each, ","); for (i = 1; i <= count; i++) wanted[each[i]] }
      ids == "" || $1 in wanted || $2 !~ /^(BOOT_F|CANCEL|COMPLETED|DEADL|FAIL|NODE_F|OUT_OF|PREEMPTED|REVOKED|TIMEOUT)/'
  return "${PIPESTATUS[0]}"
}

left() { # id, directory, missing or nothing: what a job that has ended, or that nobody knows, left behind
  local claim attempt='' ended='' since=0
  claim=$(readlink "$2/claim")
  { read -r attempt <"$2/attempt"; } 2>/dev/null
  { read -r ended <"$2/ended"; } 2>/dev/null
  if [ -n "$3" ]; then # missing
    [ -e "$2/missing" ] || : >"$2/missing"
    since=$(($(date +%s) - $(stat -c %Y "$2/missing" || date +%s)))
  else
    rm -f "$2/missing"
  fi
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$claim" "$since" "$attempt" "$ended"
}

accounts() { # job ids, with commas: what the accounts say of them
  local told
  if told=$(sacct -X -n -P -j "$1" -o JobIDRaw,State,ExitCode,DerivedExitCode,Reason 2>&1); then
    printf 'accounts\n%s\n' "$told"
  elif [[ $told == *disabled* ]]; then
    echo "no accounts"
  else
    printf 'accounts cannot be asked\n%s\n' "${told%%$'\n'*}"
  fi
}
