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
