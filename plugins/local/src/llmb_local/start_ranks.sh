# Start the ranks of a phase; if one fails, end them all. Set above: grace_s, secrets, gpus, environment().
ranks=() place=inside

# start_rank PHASE RANK COUNT COMMAND...: start one rank in the background.
start_rank() {
  (
    environment "$place"
    [ -z "$gpus" ] || export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$gpus
    export_master 127.0.0.1 "$master_port"
    export_rank "$2" "$2" 0 "$3" "$3"
    [ "$place" = outside ] || add_software_provenance "${secrets[@]}"
    phase=$1
    shift 3
    "$@" || exit_with_reason "phase $phase, rank $RANK" $?
  ) >"logs/$1.$LLMB_ATTEMPT.$2.log" 2>&1 </dev/null &
  ranks+=($!)
}

# exit_with_reason WHAT EXIT_CODE: record what failed, and exit. 129 to 192 are signals, 255 is the -1 of a program.
exit_with_reason() {
  local reason="exit code $2"
  (($2 > 128 && $2 <= 192)) && reason="killed by signal $(($2 - 128)) (exit code $2)"
  record_failure "$1: $reason"
  exit "$2"
}

# end_ranks: end all ranks. `jobs` adds a rank that was started but is not in the list yet.
end_ranks() {
  # shellcheck disable=SC2046 # several words
  end_groups "$grace_s" "${ranks[@]}" $(jobs -p)
} 2>/dev/null # bash would report each rank in the log of the job

# end_ranks_on_term: end all ranks on SIGTERM. From here on, every process that is started has its own process group.
end_ranks_on_term() {
  set -m
  trap 'end_ranks; exit 143' TERM
}

# phase NAME COUNT COMMAND...: run a command as COUNT ranks.
phase() {
  local name=$1 count=$2 rank status=0
  shift 2
  ranks=()
  for ((rank = 0; rank < count; rank++)); do start_rank "$name" "$rank" "$count" "$@"; done
  await_processes "${ranks[@]}" || status=$?
  [ "$status" = 0 ] && return
  end_ranks
  exit_with_reason "phase $name, a rank" "$status" # has no effect if the rank itself recorded a reason
}

# outside phase ...: run a phase on the machine itself, outside the virtual environment.
outside() {
  local place=outside
  "$@"
}
