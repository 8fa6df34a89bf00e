
# Set above: job_id, run_dir, time_limit_s, grace_s, environment().
set -u -m # each rank gets a process group of its own
cd "$run_dir" && mkdir -p logs || exit 1
export LLMB_JOB_ID=$job_id LLMB_RUN_DIR=$run_dir LLMB_ATTEMPT=0
sidecars=()

# at_exit: end all processes of the job, remove its secrets, and record its exit code.
at_exit() {
  local status=$?
  trap '' TERM
  end_sidecars "${sidecars[@]}"
  # shellcheck disable=SC2046 # several words
  end_groups "$grace_s" $(jobs -p)
  rm -f .secrets
  record_attempt end
  echo "$status" >exit_code
}
trap at_exit EXIT
trap 'exit 143' TERM

# phase NAME COUNT PLACE COMMAND...: run a command as COUNT ranks, and return when all of them have ended.
phase() {
  local name=$1 count=$2 place=$3 rank ranks=() status=0
  shift 3
  for ((rank = 0; rank < count; rank++)); do
    (
      environment "$place"
      export_master 127.0.0.1 "$port"
      export_rank "$rank" "$rank" 0 "$count" "$count"
      read_secrets
      exec "$@"
    ) >"logs/$name.$LLMB_ATTEMPT.$rank.log" 2>&1 </dev/null &
    ranks+=($!)
  done
  await_processes "${ranks[@]}" || status=$?
  [ "$status" = 0 ] && return
  record_failure "phase $name: exit code $status"
  exit "$status"
}

# sidecar NAME COMMAND...: start a process beside all phases.
sidecar() {
  "${@:2}" >"logs/$1.$LLMB_ATTEMPT.log" 2>&1 </dev/null &
  sidecars+=(-$!)
}

(sleep "$time_limit_s" && : >timed_out && kill -TERM $$) &
port=$(free_port $((20000 + $$ % 10000)))
print_node_provenance >provenance 2>/dev/null
record_attempt start "$(uname -n)"
