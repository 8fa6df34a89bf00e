# One host's part of a job. The hosts meet in a folder of the run's directory, which all of them see.
set -um # every process that is started is a group of its own
[ "$PWD" = "$run_dir" ] && node=0 || node=${PWD##*/}
cd "$run_dir" && mkdir -p logs meet || exit 1
nodes=${#hosts[@]} ranks=()
export LLMB_JOB_ID=$job_id LLMB_RUN_DIR=$run_dir LLMB_ATTEMPT=0

come_to() { : >"meet/$1.$node"; } # point

came_to() { # point, host; a network's file system looks again where a folder is listed
  ls meet >/dev/null && [ -e "meet/$1.$2" ]
}

meet() { # point: wait until every host has come there
  local other
  come_to "$1"
  for ((other = 0; other < nodes; other++)); do until came_to "$1" "$other"; do sleep 0.2; done; done
}

watch_others() { # show that this host lives, and end its part of the job when another one is lost, or has failed
  local beat=0 other now seen=() heard=()
  for ((other = 0; other < nodes; other++)); do heard[other]=$((SECONDS + 4 * lost_after_s)); done # it may start late
  until ls >/dev/null && { [ -e failed ] || grep -sqv $'\tcompleted\t' ended; }; do # the first host's part may be killed
    echo $((beat += 1)) >"meet/beat.$node"
    for ((other = 0; other < nodes; other++)); do
      { now=$(<"meet/beat.$other"); } 2>/dev/null
      if [ "$now" != "${seen[other]-}" ]; then
        seen[other]=$now heard[other]=$SECONDS
      elif ((SECONDS - heard[other] > lost_after_s)); then
        tell "host ${hosts[other]} is lost: no sign of life for $lost_after_s s"
      fi
    done
    sleep 1
  done
  kill -TERM $$
}

at_end() {
  [ "$1" = 0 ] || tell "host ${hosts[node]}: its part was ended"
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

take_turn() { # hosts are taken in one order by all jobs, so that no two of them wait for each other
  local other lock
  for other in "${turns[@]}"; do
    [ "$other" != "$node" ] || break
    until came_to turn "$other"; do sleep 0.2; done
  done
  exec {lock}>>"${TMPDIR:-/tmp}/llmb-hosts-$(id -un)-${hosts[node]}.lock" || exit 1
  flock "$lock" &
  wait $! || exit 1
  come_to turn
  if [ "$node" = 0 ]; then
    echo "${master_addr:-$(hostname -I | cut -d ' ' -f 1)} $(free_port $((20000 + $$ % 10000)))" >meet/master
  fi
  tell_node >"meet/provenance.$node"
  meet begin
  read -r master_addr master_port <meet/master
  if [ "$node" = 0 ]; then sort -u meet/provenance.* >provenance && : >begun; fi
}

start_rank() { # phase, place, rank, local rank, number of ranks, number of them here, command
  (
    local phase=$1 place=$2
    environment "$place"
    export_master "$master_addr" "$master_port"
    export_rank "$3" "$4" "$node" "$5" "$6"
    [ "$place" = outside ] || tell_software "${secrets[@]}"
    read_secrets
    shift 6
    "$@" && exit
    tell "phase $phase, rank $RANK on ${hosts[node]}: exit status $?"
    exit 1
  ) >"logs/$1.$LLMB_ATTEMPT.$3.log" 2>&1 </dev/null &
  ranks+=($!)
}

phase() { # name, ranks, place, command: a barrier at its end; the first rank that fails ends them all
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
  for ((rank = 0; rank < count; rank++)); do wait -n || exit 1; done
  ranks=()
  meet "$name"
}

take_turn
