# free_port FIRST: print the first free port from FIRST on.
free_port() {
  local port=$1
  while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}

# export_master ADDRESS PORT: export where rank 0 listens.
export_master() {
  export MASTER_ADDR=$1 MASTER_PORT=$2 LLMB_MASTER_ADDR=$1 LLMB_MASTER_PORT=$2
}

# export_rank RANK LOCAL_RANK NODE_RANK WORLD_SIZE LOCAL_WORLD_SIZE: export the variables of a rank.
export_rank() {
  export RANK=$1 LOCAL_RANK=$2 NODE_RANK=$3 WORLD_SIZE=$4 LOCAL_WORLD_SIZE=$5
  export LLMB_RANK=$1 LLMB_LOCAL_RANK=$2 LLMB_NODE_RANK=$3 LLMB_WORLD_SIZE=$4 LLMB_LOCAL_WORLD_SIZE=$5
}

# end_groups GRACE_S GROUP...: send SIGTERM to process groups, and SIGKILL after the grace.
end_groups() {
  local grace_s=$1 group tenth
  shift
  for group; do kill -TERM -- "-$group" 2>/dev/null; done
  for ((tenth = 0; tenth < 10 * grace_s; tenth++)); do
    for group; do kill -0 -- "-$group" 2>/dev/null && sleep 0.1 && continue 2; done
    return
  done
  for group; do kill -KILL -- "-$group" 2>/dev/null; done
}

# await_processes PID...: wait for child processes. Return the exit code of the first one that fails, immediately.
await_processes() {
  local pid running
  while (($#)); do
    running=()
    for pid; do
      if kill -0 "$pid" 2>/dev/null; then running+=("$pid"); else wait "$pid" || return; fi
    done
    set -- "${running[@]}"
    (($# == 0)) || wait -n "$@" 2>/dev/null || : # alone, `wait -n` returns 127 for a process that ended before the call
  done
}

# record_failure REASON: keep why the job fails. Only the first call has an effect.
record_failure() { (set -C && echo "$1" >failed) 2>/dev/null; }

# end_sidecars PID...: send SIGUSR1 to processes, or to groups with a minus sign, and kill those that run on for 10 s.
end_sidecars() {
  local each tenth
  for each; do kill -USR1 -- "$each"; done
  for ((tenth = 0; tenth < 100; tenth++)); do
    for each; do kill -0 -- "$each" && sleep 0.1 && continue 2; done
    return
  done
  for each; do kill -KILL -- "$each"; done
} 2>/dev/null

# record_attempt start|end [NODE...]: append the time at which this attempt starts on these nodes, or ends.
record_attempt() {
  local word=$1
  shift
  printf '%s\t%s\t%s\t%s\n' "$word" "$LLMB_ATTEMPT" "$(date +%s)" "$*" >>attempts
} 2>/dev/null

# check_output PHASE FILE SECONDS: exit if an output is missing or empty after SECONDS, in which a network file system
# may still hide it.
check_output() {
  local tenth
  for ((tenth = 0; tenth <= 10 * $3; tenth++)); do [ -s "$2" ] && return || sleep 0.1; done
  record_failure "phase $1: its output $2 is missing or empty"
  exit 1
}

read_secrets() { [ ! -f .secrets ] || . ./.secrets; }
