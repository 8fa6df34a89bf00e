#!/usr/bin/env bash
# abcde-tiny: 8 processes on this machine.
set -u
cd /work/runs/abcde-tiny || exit 1
mkdir -p logs

unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export FLAGS='--a --b=1'
export ODD='it'"'"'s $(touch x)
"two" lines'
export VIRTUAL_ENV=/work/cache/venv/venv-e6582539815e PATH=/work/cache/venv/venv-e6582539815e/bin:$PATH
export LLMB_JOB_ID=abcde-tiny LLMB_RUN_DIR=/work/runs/abcde-tiny LLMB_ATTEMPT=0
if [ -f .secrets ]; then . ./.secrets && rm -f .secrets; fi

# One job at a time on this machine. The kernel frees the lock when the last process of a job is gone.
lock="$HOME"/.cache/llmb-"$HOSTNAME".lock
mkdir -p "$(dirname "$lock")" && exec 7>>"$lock" || exit 1
flock 7 || exit 1
: >begun
set -m # from here on, every process that is started is a group of its own

free_port() { # the first above $1 that nothing listens on
  local port=$1
  while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}
export MASTER_ADDR=127.0.0.1 MASTER_PORT
MASTER_PORT=$(free_port $((20000 + $$ % 10000)))
export LLMB_MASTER_ADDR=$MASTER_ADDR LLMB_MASTER_PORT=$MASTER_PORT

ranks=()
start_rank() { # phase, rank, number of ranks, command
  local log=logs/$1.$LLMB_ATTEMPT.$2.log phase=$1
  export RANK=$2 LOCAL_RANK=$2 NODE_RANK=0 WORLD_SIZE=$3 LOCAL_WORLD_SIZE=$3
  export LLMB_RANK=$2 LLMB_LOCAL_RANK=$2 LLMB_NODE_RANK=0 LLMB_WORLD_SIZE=$3 LLMB_LOCAL_WORLD_SIZE=$3
  shift 3
  ("$@" >"$log" 2>&1 </dev/null || tell_end "phase $phase, rank $RANK" $?) &
  ranks+=($!)
}

tell_end() { # who, exit status
  local how="exit status $2"
  (($2 > 128)) && how="killed by signal $(($2 - 128)) (exit status $2)"
  tell "$1: $how"
  exit "$2"
}

tell() { (set -C && echo "$1" >failed) 2>/dev/null; } # the first failure is the one that counts

end_ranks() { # TERM to all their processes, KILL after a while to those that do not heed it
  local rank tenth
  ranks+=($(jobs -p)) # one that was started this very moment
  for rank in "${ranks[@]}"; do kill -TERM -- "-$rank" 2>/dev/null; done
  for ((tenth = 0; tenth < 10 * 10; tenth++)); do
    for rank in "${ranks[@]}"; do kill -0 -- "-$rank" 2>/dev/null && sleep 0.1 && continue 2; done
    return
  done
  for rank in "${ranks[@]}"; do kill -KILL -- "-$rank" 2>/dev/null; done
}
trap 'end_ranks; exit 143' TERM

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

output() { # phase, file: must be there and not be empty
  [ -s "$2" ] && return
  tell "phase $1: its output $2 is missing or empty"
  exit 1
}

phase prof 8 nsys profile train
output prof '/work/a report'
phase convert 1 convert 'it'"'"'s'
output convert /work/pgle
phase perf 8 env 'XLA_FLAGS=--x=1 --y=2' train '$(touch x)'
