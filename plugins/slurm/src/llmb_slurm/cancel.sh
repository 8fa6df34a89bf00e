# cancel JOB_ID...: cancel jobs. Exit with 1 if Slurm does not cancel one of them. Ignore jobs that have ended or are unknown.
cancel() {
  local errors
  errors=$(scancel "$@" 2>&1) && return
  errors=$(printf '%s\n' "$errors" | grep -v -e 'already completing or completed$' -e 'Invalid job id specified$') || return 0
  echo "$errors" >&2
  exit 1
}
