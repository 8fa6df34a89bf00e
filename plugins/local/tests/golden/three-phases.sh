#!/usr/bin/env bash
# abcde-tiny: 8 processes on this machine, in a virtual environment.
set -u
cd /work/runs/abcde-tiny || exit 1
mkdir -p logs

export LLMB_JOB_ID=abcde-tiny LLMB_RUN_DIR=/work/runs/abcde-tiny LLMB_ATTEMPT=0
within=${1-} master_port=${2-} gpus=${3-} # within a container: the phase, a free port, GPUs to choose from all
grace_s=10 secrets=(HF_TOKEN)

environment() { # of every rank: inside or outside
  [ "$1" = outside ] || unset PYTHONPATH PYTHONHOME
  export FLAGS='--a --b=1'
  export ODD='it'"'"'s $(touch x)
"two" lines'
  [ "$1" = outside ] || export VIRTUAL_ENV=/work/cache/venv/venv-e6582539815e PATH=/work/cache/venv/venv-e6582539815e/bin:$PATH
}

free_port() { # the first from $1 on that nothing listens on
  local port=$1
  while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}

export_master() { # address, port: where rank 0 listens
  export MASTER_ADDR=$1 MASTER_PORT=$2 LLMB_MASTER_ADDR=$1 LLMB_MASTER_PORT=$2
}

export_rank() { # rank, local rank, node's rank, world size, local world size
  export RANK=$1 LOCAL_RANK=$2 NODE_RANK=$3 WORLD_SIZE=$4 LOCAL_WORLD_SIZE=$5
  export LLMB_RANK=$1 LLMB_LOCAL_RANK=$2 LLMB_NODE_RANK=$3 LLMB_WORLD_SIZE=$4 LLMB_LOCAL_WORLD_SIZE=$5
}

end_groups() { # seconds of grace, process groups: TERM to all, and KILL to those that do not heed it so long
  local grace_s=$1 group tenth
  shift
  for group; do kill -TERM -- "-$group" 2>/dev/null; done
  for ((tenth = 0; tenth < 10 * grace_s; tenth++)); do
    for group; do kill -0 -- "-$group" 2>/dev/null && sleep 0.1 && continue 2; done
    return
  done
  for group; do kill -KILL -- "-$group" 2>/dev/null; done
}

tell() { (set -C && echo "$1" >failed) 2>/dev/null; } # why the job ends: the first failure is the one that counts

output() { # phase, file, for how many seconds a network's file system may not show it: must be there and not be empty
  local tenth
  for ((tenth = 0; tenth <= 10 * $3; tenth++)); do [ -s "$2" ] && return || sleep 0.1; done
  tell "phase $1: its output $2 is missing or empty"
  exit 1
}

read_secrets() { [ ! -f .secrets ] || . ./.secrets; } # what is placed beside the job's script

tell_node() { # what this node is, as lines of a job's provenance
  echo "host=$(hostname)"
  echo "kernel=$(uname -r)"
  nvidia-smi --query-gpu=driver_version,name --format=csv,noheader 2>/dev/null | sort -u |
    sed 's/\([^,]*\), /driver=\1\ngpu=/'
}

tell_software() { # patterns of names: the first rank adds to provenance, once, what it finds around it, but not these
  [ "$RANK" = 0 ] && ! grep -q ^nccl= provenance 2>/dev/null || return 0
  { tell_libraries; tell_environment "$@"; chmod 600 provenance; } 2>/dev/null >>provenance # an image may lack programs
}

tell_libraries() {
  local nccl
  nccl=$(ldconfig -p | sed -n 's/.*libnccl\.so.* => //p' | head -n 1)
  [ -z "$nccl" ] || nccl=$(readlink -f "$nccl")
  echo "nccl=${NCCL_VERSION:-${nccl##*libnccl.so.}}"
  echo "cuda=${CUDA_VERSION:-$(sed -n 's/.*"version" *: *"\([^"]*\)".*/\1/p' /usr/local/cuda/version.json | head -n 1)}"
}

tell_environment() { # patterns of names: without these, and all that may be secret; more than a spec is refused for
  local name value pattern
  env -0 | while IFS='=' read -r -d '' name value; do
    for pattern; do [[ $name != $pattern ]] || continue 2; done
    case $value in
      *://*@*) continue ;; # an address with a password
      hf_* | gh[a-z]_* | github_pat_* | glpat-* | xox[a-z]-* | sk-* | nvapi-* | AKIA* | eyJ* | -----BEGIN*) continue ;;
    esac
    case ${name^^} in
      *TOKEN* | *KEY* | *SECRET* | *PASS* | *PWD* | *CRED* | *AUTH* | *PROXY* | *COOKIE* | *WEBHOOK* | PAT | *_PAT) ;;
      *) printf 'env.%s=%s\n' "$name" "${value//$'\n'/ }" ;;
    esac
  done
}

# Starts the ranks of a phase, and ends them all when one fails. Set above: grace_s, secrets, gpus, environment().
ranks=() place=inside
start_rank() { # phase, rank, number of ranks, command
  (
    environment "$place"
    [ -z "$gpus" ] || export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$gpus
    export_master 127.0.0.1 "$master_port"
    export_rank "$2" "$2" 0 "$3" "$3"
    [ "$place" = outside ] || tell_software "${secrets[@]}"
    phase=$1
    shift 3
    "$@" || tell_end "phase $phase, rank $RANK" $?
  ) >"logs/$1.$LLMB_ATTEMPT.$2.log" 2>&1 </dev/null &
  ranks+=($!)
}

tell_end() { # who, exit status
  local how="exit status $2"
  (($2 > 128)) && how="killed by signal $(($2 - 128)) (exit status $2)"
  tell "$1: $how"
  exit "$2"
}

end_ranks() { # those too that were started this very moment
  end_groups "$grace_s" "${ranks[@]}" $(jobs -p)
}

own_groups() { # from here on, every process that is started is a group of its own, and TERM ends them all
  set -m
  trap 'end_ranks; exit 143' TERM
}

phase() { # name, number of ranks, command: the first rank that fails ends them all
  local name=$1 count=$2 rank status=0
  shift 2
  ranks=()
  for ((rank = 0; rank < count; rank++)); do start_rank "$name" "$rank" "$count" "$@"; done
  for ((rank = 0; rank < count && status == 0; rank++)); do wait -n || status=$?; done
  [ "$status" = 0 ] && return
  end_ranks
  tell_end "phase $name, a rank" "$status" # unless it told so itself
}

outside() { # phase, name, and so on: on the machine itself, out of the virtual environment
  local place=outside
  "$@"
}

read_secrets
rm -f .secrets
{
  tell_node
} >provenance 2>/dev/null

lock="$HOME"/.cache/llmb-"$HOSTNAME".lock max_parallel=1 gpus_wanted=0
machine_gpus=()
# A job's file `container` holds engine, name and Docker's address of the container that it is about to start.

end_container_of() { # directory of a job that does not run any more
  local engine name host said
  { read -r engine name host <"$1/container"; } 2>/dev/null || return 0
  if said=$(remove_container "$engine" "$name" "$host" 2>&1); then
    rm -f "$1/container"
  else
    echo "the container $name of a run that was killed cannot be removed: ${said//$'\n'/ }" >&2
    return 1
  fi
}

remove_container() { # engine, name, Docker's address: true as well where there is none
  case $1 in
    docker) [ -z "$3" ] || local -x DOCKER_HOST=$3 ;;
    podman) ;;
    enroot) ! enroot list | grep -qxF "$2" || enroot remove --force "$2" && return ;;
    *) return 1 ;; # the file may be anybody's
  esac
  "$1" rm --force --volumes "$2" || "$1" container inspect "$2" 2>&1 | grep -qi "no such container"
}
# Waits for this job's turn on the machine, and for GPUs that no other run has. The kernel frees a lock when the last
# process that has it is gone; its file names the directory of the last job that had it.
# Set above: lock, max_parallel, machine_gpus (all of them), gpus_wanted.
. ./detached.sh # supervisor and settle

held=() descriptors=()
make_for_all() { # file: other users take turns by it as well
  [ -e "$1" ] || (umask 0 && : >>"$1")
  [ -w "$1" ] && return
  tell "the lock $1 cannot be written; see target.lock"
  exit 1
}

hold() { # file, options of flock: how long to wait
  local descriptor
  make_for_all "$1"
  exec {descriptor}>>"$1" || exit 1
  if flock "${@:2}" "$descriptor"; then held+=("$1") && descriptors+=("$descriptor") && return; fi
  exec {descriptor}>&-
  return 1
}

without_locks() { # command: of which a process may outlive the job
  local descriptor
  for descriptor in "${descriptors[@]}"; do exec {descriptor}>&-; done
  exec "$@"
}

is_held() { # file
  local each
  for each in "${held[@]}"; do [ "$each" != "$1" ] || return 0; done
  return 1
}

take() { # how many, files: the locks of that many of them
  local wanted=$1 file patience=(-n)
  shift
  (($# > wanted)) || patience=(-w 3) # there is nothing to choose
  until
    for file; do
      ((wanted == 0)) || is_held "$file" || ! hold "$file" "${patience[@]}" || ((wanted -= 1))
    done
    ((wanted == 0))
  do
    end_orphans "$@"
    sleep 0.2
  done
}

next_look_s=0
end_orphans() { # files: of a job that has one of these locks and whose supervisor was killed, nobody may ask any more
  local file before
  ((SECONDS >= next_look_s)) || return
  next_look_s=$((SECONDS + 3))
  for file; do
    { read -r before <"$file"; } 2>/dev/null || continue
    [ -O "$before/started" ] && ! [ -e "$before/ended" ] && ! supervisor "$before" >/dev/null || continue
    # none can be seen of a job in another container, whose supervisor only seems to be gone
    ! grep -qzxF "LLMB_RUN_DIR=$before" /proc/[0-9]*/environ 2>/dev/null || settle "$before"
  done
}

turn=1 in_line=''
arrive() { # take the number after the highest that is out: a file, locked as long as this job is in line
  local queue file
  let_the_one_before_arrive
  make_for_all "$lock.queue"
  exec {queue}>>"$lock.queue" && flock "$queue" || exit 1
  for file in "$lock".turn-*; do
    [ ! -e "$file" ] || ((${file##*-} < turn)) || turn=$((${file##*-} + 1))
  done
  make_for_all "$lock.turn-$turn"
  exec {in_line}>>"$lock.turn-$turn" && flock "$in_line" || exit 1
  exec {queue}>&-
  echo yes >arriving
  exec 7>&-
}

let_the_one_before_arrive() { # of those that were submitted at once; of one that never arrives, the one before that
  local before=.
  while read -r before <"$before/after" && [ -n "$before" ]; do
    flock -w 60 -s "$before/submit" true && flock -w 60 -s "$before/arriving" true # until it lives, and is in line
    [ ! -s "$before/arriving" ] || return
  done 2>/dev/null
}

wait_in_line() { # whoever comes first is served first, however many GPUs it needs
  local other
  for ((other = turn - 1; other > 0; other--)); do
    [ ! -e "$lock.turn-$other" ] || { flock -s "$lock.turn-$other" true && rm -f "$lock.turn-$other"; } || exit 1
  done
}

places=("$lock")
for ((place = 1; place < max_parallel; place++)); do places+=("$lock.$place"); done
mkdir -p "$(dirname "$lock")"
arrive
wait_in_line
take 1 "${places[@]}"
take "$gpus_wanted" "${machine_gpus[@]/#/$lock.gpu-}"
rm -f "$lock.turn-$turn"
exec {in_line}>&-

gpus=''
for file in "${held[@]}"; do
  [[ $file != "$lock".gpu-* ]] || gpus+=${gpus:+,}${file#"$lock.gpu-"}
  if { read -r before <"$file"; } 2>/dev/null; then end_container_of "$before" || exit 1; fi
  echo "$LLMB_RUN_DIR" >"$file"
done
: >begun

own_groups
master_port=$(free_port $((20000 + $$ % 10000)))

phase prof 8 nsys profile train
output prof '/work/a report' 0
phase convert 1 convert 'it'"'"'s'
output convert /work/pgle 0
phase perf 8 env 'XLA_FLAGS=--x=1 --y=2' train '$(touch x)'
