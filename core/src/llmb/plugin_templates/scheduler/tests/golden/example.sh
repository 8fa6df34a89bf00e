#!/usr/bin/env bash
job_id=contract
run_dir=/w/runs/contract
time_limit_s=600 grace_s=10
# environment PLACE: set the variables of the job, "inside" or "outside" its container or virtual environment.
environment() {
  export MODE='it'"'"'s'
}
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

print_node_provenance() {
  echo "host=$(hostname)"
  echo "kernel=$(uname -r)"
  nvidia-smi --query-gpu=driver_version,name --format=csv,noheader 2>/dev/null | sort -u |
    sed 's/\([^,]*\), /driver=\1\ngpu=/'
}

# add_software_provenance PATTERN...: append what rank 0 finds to `provenance`, once. Omit variables that match a
# PATTERN.
add_software_provenance() {
  [ "$RANK" = 0 ] && ! grep -q ^nccl= provenance 2>/dev/null || return 0
  { print_library_versions; print_environment "$@"; chmod 600 provenance; } 2>/dev/null >>provenance # an image may lack programs
}

print_library_versions() {
  local nccl
  nccl=$(ldconfig -p | sed -n 's/.*libnccl\.so.* => //p' | head -n 1)
  [ -z "$nccl" ] || nccl=$(readlink -f "$nccl")
  echo "nccl=${NCCL_VERSION:-${nccl##*libnccl.so.}}"
  echo "cuda=${CUDA_VERSION:-$(sed -n 's/.*"version" *: *"\([^"]*\)".*/\1/p' /usr/local/cuda/version.json | head -n 1)}"
}

# print_environment PATTERN...: print variables, except those that match a PATTERN or may be secret. This is stricter
# than the check of [env] in a spec.
print_environment() {
  local name value pattern
  env -0 | while IFS='=' read -r -d '' name value; do
    for pattern; do [[ $name != $pattern ]] || continue 2; done
    case $value in
      *://*@*) continue ;; # a URL with a password
      hf_* | gh[a-z]_* | github_pat_* | glpat-* | xox[a-z]-* | sk-* | nvapi-* | AKIA* | eyJ* | -----BEGIN*) continue ;;
    esac
    case ${name^^} in
      *TOKEN* | *KEY* | *SECRET* | *PASS* | *PWD* | *CRED* | *AUTH* | *PROXY* | *COOKIE* | *WEBHOOK* | PAT | *_PAT) ;;
      *) printf 'env.%s=%s\n' "$name" "${value//$'\n'/ }" ;;
    esac
  done
}

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
record_attempt start "$(hostname)"

phase prepare 1 inside true
check_output prepare /w/runs/contract/data 0
phase train 2 inside env 'WORDS=a b'"'"'c"d $HOME' python train.py 'a b'"'"'c"d $HOME'