#!/usr/bin/env bash
# contract: 2 processes on each of node1
run_dir=/w/runs/contract
job_id=contract
per_node=2
master_addr=''
lost_after_s=60
grace_s=10
hosts=(node1)
secrets=()
lock_order=(0) # equal for all jobs
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
  echo "host=$(uname -n)"
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
# The part of one host. The hosts synchronise through files in the folder `meet` of the run's directory, which they
# share.
set -um # every process that is started gets a process group of its own
[ "$PWD" = "$run_dir" ] && node=0 || node=${PWD##*/}
cd "$run_dir" && mkdir -p logs meet || exit 1
nodes=${#hosts[@]} ranks=()
export LLMB_JOB_ID=$job_id LLMB_RUN_DIR=$run_dir LLMB_ATTEMPT=0

# reach POINT: record that this host has reached a point.
reach() { : >"meet/$1.$node"; }

# has_reached POINT HOST: check another host. Listing a folder refreshes the cache of a network file system.
has_reached() {
  ls meet >/dev/null && [ -e "meet/$1.$2" ]
}

# barrier POINT: wait until every host has reached a point.
barrier() {
  local other
  reach "$1"
  for ((other = 0; other < nodes; other++)); do until has_reached "$1" "$other"; do sleep 0.2; done; done
}

# watch_others: write a heartbeat, and end this host's part if another host is lost or has failed.
watch_others() {
  local beat=0 other now seen=() heard=()
  for ((other = 0; other < nodes; other++)); do heard[other]=$((SECONDS + 4 * lost_after_s)); done # a host may start late
  until ls >/dev/null && { [ -e failed ] || grep -sqv $'\tcompleted\t' ended; }; do # a killed first host leaves only `ended`
    echo $((beat += 1)) >"meet/beat.$node"
    for ((other = 0; other < nodes; other++)); do
      { now=$(<"meet/beat.$other"); } 2>/dev/null
      if [ "$now" != "${seen[other]-}" ]; then
        seen[other]=$now heard[other]=$SECONDS
      elif ((SECONDS - heard[other] > lost_after_s)); then
        record_failure "host ${hosts[other]} is lost: no sign of life for $lost_after_s s"
      fi
    done
    sleep 1
  done
  kill -TERM $$
}

at_end() {
  [ "$1" = 0 ] || record_failure "host ${hosts[node]}: its part was stopped"
  end_groups "$grace_s" "${ranks[@]}"
  kill -TERM -- "-$watcher" 2>/dev/null
  [ "$1" = 0 ] || echo "llmb-hosts: $(<failed)" >&2
}

watcher=''
trap 'at_end $?' EXIT
trap 'exit 143' TERM
watch_others &
watcher=$!
disown

# take_turn: wait for this host. All jobs lock hosts in the same order, which prevents deadlocks.
take_turn() {
  local other lock
  for other in "${lock_order[@]}"; do
    [ "$other" != "$node" ] || break
    until has_reached turn "$other"; do sleep 0.2; done
  done
  mkdir -p "$HOME/.cache" && exec {lock}>>"$HOME/.cache/llmb-hosts-${hosts[node]}.lock" || exit 1
  flock "$lock" &
  wait $! || exit 1
  reach turn
  if [ "$node" = 0 ]; then
    echo "${master_addr:-$(hostname -I | cut -d ' ' -f 1)} $(free_port $((20000 + $$ % 10000)))" >meet/master
  fi
  print_node_provenance >"meet/provenance.$node"
  barrier begin
  read -r master_addr master_port <meet/master
  if [ "$node" = 0 ]; then sort -u meet/provenance.* >provenance && : >begun; fi
}

# start_rank PHASE PLACE RANK LOCAL_RANK COUNT COUNT_HERE COMMAND...: start one rank in the background.
start_rank() {
  (
    local phase=$1 place=$2
    environment "$place"
    export_master "$master_addr" "$master_port"
    export_rank "$3" "$4" "$node" "$5" "$6"
    [ "$place" = outside ] || add_software_provenance "${secrets[@]}"
    read_secrets
    shift 6
    "$@" && exit
    record_failure "phase $phase, rank $RANK on ${hosts[node]}: exit code $?"
    exit 1
  ) >"logs/$1.$LLMB_ATTEMPT.$3.log" 2>&1 </dev/null &
  ranks+=($!)
}

# phase NAME RANKS PLACE COMMAND...: run a command, and return when it has ended on all hosts. One failed rank ends
# the job.
phase() {
  local name=$1 place=$3 count=$per_node world=$((nodes * per_node)) first=$((node * per_node)) rank
  case $2 in
    node) count=1 world=$nodes first=$node ;;
    first) count=$((node == 0)) world=1 first=0 ;;
  esac
  shift 3
  ranks=()
  for ((rank = 0; rank < count; rank++)); do
    start_rank "$name" "$place" $((first + rank)) "$rank" "$world" "$count" "$@"
  done
  await_processes "${ranks[@]}" || exit 1
  ranks=()
  barrier "$name"
}

take_turn

phase prepare first inside true
[ "$node" != 0 ] || check_output prepare /w/runs/contract/data 5
phase train all inside env 'WORDS=a b'"'"'c"d $HOME' python train.py 'a b'"'"'c"d $HOME'