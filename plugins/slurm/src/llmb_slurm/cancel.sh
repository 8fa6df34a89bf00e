# cancel JOB_ID...: cancel jobs. Exit with 1 if Slurm does not cancel one of them. Ignore jobs that have ended or are unknown.
cancel() {
  local errors
  errors=$(scancel "$@" 2>&1) && return
  errors=$(printf '%s\n' "$errors" | grep -v -e 'already completing or completed$' -e 'Invalid job id specified$') || return 0
  echo "$errors" >&2
  exit 1
}

# await_submissions FOLDER...: wait until no process submits jobs in these folders. Exit with 73 after two minutes. If a
# lock cannot be opened or the file system has no locks, do not wait.
await_submissions() {
  local folder status
  for folder; do
    [ -e "$folder/.submit" ] && open_lock "$folder/.submit" || continue
    flock -s -w 120 "$opened"
    status=$?
    exec {opened}>&-
    [ $status != 1 ] || { echo "another llmb has been submitting in $folder for 2 minutes" >&2 && exit 73; }
  done
}
