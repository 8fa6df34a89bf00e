#!/usr/bin/env bash
#SBATCH --job-name=abcde-tiny
#SBATCH --comment="llmb abcde-tiny f94363ab79a3"
#SBATCH --output=/work/runs/abcde-tiny/slurm.log
#SBATCH --open-mode=append
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:8
#SBATCH --time=00:30:00
#SBATCH --mem=0
#SBATCH --exclusive
# Slurm runs this script once, on the first node. srun runs it as every rank of every phase, with the argument "rank".
set -u
run_dir=/work/runs/abcde-tiny
cd "$run_dir" || exit 1

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

# environment PLACE: set the variables of the job, "inside" or "outside" its container or virtual environment.
environment() {
  export FLAGS='--a --b=1'
}

# run_rank PLACE COMMAND...: run a command as a rank, "inside" or "outside" its container or virtual environment.
run_rank() {
  environment "$1"
  export_master "$LLMB_MASTER_ADDR" "$LLMB_MASTER_PORT"
  export_rank "$SLURM_PROCID" "$SLURM_LOCALID" "$SLURM_NODEID" "$SLURM_STEP_NUM_TASKS" "${SLURM_STEP_TASKS_PER_NODE%%[(,]*}"
  [ "$1" = outside ] || . ./provenance.sh rank 'SLURM_*' 'SLURMD_*' HF_TOKEN
  read_secrets
  shift
  # After a failure, wait until srun has received the output.
  local stderr status
  trap : HUP INT QUIT TERM USR1 USR2
  exec {stderr}>&2 2>/dev/null
  "$@" 2>&"$stderr" {stderr}>&- && exit
  status=$?
  sleep 0.3
  ulimit -c 0
  trap - HUP INT QUIT TERM USR1 USR2
  ((status <= 128 || status > 192)) || kill -$((status - 128)) $$
  exit $status
}

case ${1-} in
  rank) shift && run_rank "$@" ;;
  node) . ./provenance.sh node && exit ;;
esac

export LLMB_JOB_ID=abcde-tiny LLMB_RUN_DIR=$run_dir LLMB_ATTEMPT=${SLURM_RESTART_COUNT:-0}

# Only one job runs in this directory; a duplicate exits. Links are created atomically, also on network file systems.
ln -s "$SLURM_JOB_ID" claim 2>/dev/null
claimed=$(readlink claim)
if [ "$claimed" != "$SLURM_JOB_ID" ]; then
  echo "llmb: job $SLURM_JOB_ID exits, because ${claimed:+job $claimed runs in }$run_dir${claimed:- cannot be written}" >&2
  exit 1
fi
rm -f ended missing
mkdir -p logs && chmod go-w logs
echo "$LLMB_ATTEMPT" >attempt
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
record_attempt start "${nodes[@]}"
echo "llmb: attempt $LLMB_ATTEMPT of job $SLURM_JOB_ID on $SLURM_JOB_NODELIST"

reason=''

# record_failure REASON: print why the job fails, and keep it for `ended`.
record_failure() {
  reason=$1
  echo "llmb: $reason" >&2
}

# at_exit: keep the end, which Slurm may have purged before the next poll, and remove the secrets.
at_exit() {
  local status=$?
  will_be_requeued || rm -f .secrets
  record_attempt end
  printf '%s\t%s\t%s\n' "$SLURM_JOB_ID" "$status" "$reason" >ended.partial && mv ended.partial ended
}
trap at_exit EXIT
trap 'exit 143' TERM

# will_be_requeued: check whether there will be another attempt, which needs the secrets. If squeue does not answer in
# time, the secrets are removed: Slurm kills this script KillWait (30 s by default) after SIGTERM.
will_be_requeued() {
  [ -f .secrets ] && [ "$(timeout 10 squeue -h -j "$SLURM_JOB_ID" -O RestartCnt:.0 2>/dev/null)" -gt "$LLMB_ATTEMPT" ] 2>/dev/null
}

if [ "$LLMB_ATTEMPT" != 0 ] && [ ! -f .secrets ]; then
  record_failure "the previous attempt removed the secrets, because squeue did not report that the job would start again; run again"
  exit 1
fi

export_master "${nodes[0]}" "$(free_port $((20000 + SLURM_JOB_ID % 10000)))"

{
  printf 'slurm=%s\njob_id=%s\npartition=%s\n' "$(srun --version)" "$SLURM_JOB_ID" "${SLURM_JOB_PARTITION-}"
  printf 'image=%s\n' nvcr.io/nvidia/nemo:24.09
  printf 'image_digest=%s\n' sha256:0000000000000000000000000000000000000000000000000000000000000000
  sed 's/^/image_sha256=/' /work/cache/images/image-nemo-24.09-abc731130848.sqsh.sha256
  timeout 60 srun --nodes=8 --ntasks=8 --ntasks-per-node=1 bash job.sh node | sort -uV
} >provenance 2>/dev/null </dev/null

all_ranks=(--nodes=8 --ntasks=64 --ntasks-per-node=8)
first_rank=(--nodes=1 --ntasks=1 --ntasks-per-node=1 --relative=0)
each_node=(--nodes=8 --ntasks=8 --ntasks-per-node=1)
container=(
  --container-image=/work/cache/images/image-nemo-24.09-abc731130848.sqsh
  --container-mounts=/work/runs/abcde-tiny:/work/runs/abcde-tiny,/work/cache:/work/cache,/data:/dataset:ro
  --container-workdir=/work/runs/abcde-tiny
  --container-writable
  --no-container-mount-home
)

# phase NAME SRUN_OPTION... COMMAND...: run a phase until all ranks have ended. One failed rank ends the others.
phase() {
  local name=$1 log_length status how ranks message
  shift
  log_length=$(stat -c %s slurm.log)
  srun --label --wait=60 --kill-on-bad-exit=1 --output="logs/$name.$LLMB_ATTEMPT.log" "$@" </dev/null &
  wait $!
  status=$?
  [ $status = 0 ] && return
  IFS=$'\t' read -r ranks message < <(first_failure "$log_length")
  case $message in
    'Exited with exit code '*) status=${message##* } ;;
    Aborted*) status=134 ;;
    'Bus error'*) status=135 ;;
    Killed*) status=137 ;;
    'Segmentation fault'*) status=139 ;;
    *) ranks='' ;; # unknown: keep the exit code of srun
  esac
  how="exit code $status"
  ((status <= 128 || status > 192)) || how="killed by signal $((status - 128)) ($how)"
  record_failure "phase $name${ranks:+, $ranks}: $how"
  exit "$status"
}

# first_failure LENGTH: print ranks and nodes of the first failure and its message, separated by a tab, from the log after
# LENGTH bytes. srun may exit with the code of a rank that it killed.
first_failure() {
  tail -c "+$(($1 + 1))" slurm.log | sed -n 's/^srun: error: \(.*\): task\(s\{0,1\} [0-9,-]*\): /rank\2 on \1\t/p' | head -n 1
}

phase clocks "${each_node[@]}" bash job.sh rank outside nvidia-smi -lgc 1980
phase prof "${all_ranks[@]}" "${container[@]}" bash job.sh rank inside nsys profile train
check_output prof '/work/a report' 5
phase convert "${first_rank[@]}" "${container[@]}" bash job.sh rank inside convert 'it'"'"'s'
check_output convert /work/pgle 5
phase perf "${all_ranks[@]}" "${container[@]}" bash job.sh rank inside env 'XLA_FLAGS=--x=1 --y=2' train '$(touch x)'
