#!/usr/bin/env bash
# abcde-tiny: 4 processes on this machine, in podman, image nvcr.io/nvidia/nemo:24.09.
set -u
cd /work/runs/abcde-tiny || exit 1
mkdir -p logs && chmod go-w logs

export LLMB_JOB_ID=abcde-tiny LLMB_RUN_DIR=/work/runs/abcde-tiny LLMB_ATTEMPT=0
phase_in_container=${1-} master_port=${2-} gpus=${3-} # set if this script runs in a container; gpus may be empty
grace_s=10 secrets=()

# environment PLACE: set the variables of the job, "inside" or "outside" its container or virtual environment.
environment() {
  :
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

read_secrets
rm -f .secrets
[ -z "$phase_in_container" ] || end_ranks_on_term
case $phase_in_container in
  train) phase train 4 env A=1 bash train.sh; : >finished; exit ;;
esac

{
  print_node_provenance
} >provenance 2>/dev/null

lock="$HOME"/.cache/llmb-"$HOSTNAME".lock max_parallel=2 gpus_wanted=4
machine_gpus=(0 1 2 3 4 5 6 7)
# A job's file `container` contains the engine, name and Docker host of the container that the job is about to start.

# remove_container_of DIRECTORY: remove the container of a job that has ended.
remove_container_of() {
  local engine name host error
  { read -r engine name host <"$1/container"; } 2>/dev/null || return 0
  if error=$(remove_container "$engine" "$name" "$host" 2>&1); then
    rm -f "$1/container"
  else
    echo "cannot remove the container $name of a killed run: ${error//$'\n'/ }" >&2
    return 1
  fi
}

# remove_container ENGINE NAME DOCKER_HOST: remove a container. Succeed also if it does not exist.
remove_container() {
  case $1 in
    docker) [ -z "$3" ] || local -x DOCKER_HOST=$3 ;;
    podman) ;;
    # in a trap, `return` without a number returns the exit code of the job
    enroot) ! enroot list | grep -qxF "$2" || enroot remove --force "$2" && return 0 ;;
    *) return 1 ;; # another program may have written the file
  esac
  "$1" rm --force --volumes "$2" || "$1" container inspect "$2" 2>&1 | grep -qi "no such container"
}
# open_lock FILE: open a lock file for reading and writing, as file descriptor $opened. Create it so that everyone who
# can write to its directory can take the lock. Follow no symbolic link, open no second name of another file, and wait
# for no pipe. On failure set $lock_error. It names the host, because its command must run there: `uname` reports the
# host, but HOSTNAME may be exported by another one. The owner of a lock may be another user, so its content is not to
# be trusted.
open_lock() {
  local names='' kind='' quoted named
  quoted=$(printf %q "$1") named="the lock $1 on $(uname -n)"
  # opens nothing that appears meanwhile
  [ -e "$1" ] || [ -L "$1" ] || (umask 0 && dd if=/dev/null of="$1" conv=excl) 2>/dev/null
  read -r names kind < <(LC_ALL=C stat -c '%h %F' -- "$1" 2>/dev/null)
  case "$names $kind" in
    ' ' | '1 regular '*) lock_error='' ;; # it does not exist, or is as it should be
    *' regular '*) lock_error="$named is a hard link of another file; run \`rm $quoted\` there" ;;
    *' directory') lock_error="$named is a directory, not a regular file; run \`rmdir $quoted\` there" ;;
    *) lock_error="$named is a $kind, not a regular file; run \`rm $quoted\` there" ;;
  esac
  [ -z "$lock_error" ] || return 1
  lock_error="cannot write $named; make it writable"
  [ -r "$1" ] && [ -w "$1" ] || return 1
  exec {opened}<>"$1" || return 1 # does not wait for the other end of a pipe
  # what is open has this name, and no other
  if [ ! -L "$1" ] && [ "$1" -ef "/proc/self/fd/$opened" ] && [ -f "$1" ] && [ "$(stat -c %h -- "$1")" = 1 ]; then
    return
  fi
  exec {opened}>&-
  lock_error="$named was replaced while llmb opened it; start again"
  return 1
}

# Wait for this job's turn on the machine and for free GPUs. Jobs queue by number, first come, first served. Every
# lock is an flock, which the kernel releases when the last process that holds it is gone. A lock file names the
# directory of the last job that held it. Other users may write the locks and add files beside them, so neither a name
# nor a content is trusted. Set above: lock, max_parallel, machine_gpus (all indices), gpus_wanted.
. ./detached.sh # supervisor_pid and end_lost_job

held=() descriptors=()

# open_shared FILE: open a lock file that other users share, as file descriptor $opened.
open_shared() {
  open_lock "$1" && return
  record_failure "$lock_error, or set \`lock = \"/path/to/file\"\` in [target]"
  exit 1
}

# is_mine DIRECTORY: check whether a directory that a lock names belongs to this user.
is_mine() { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; }

# try_lock FILE OPTION...: lock a file. The options of flock limit the wait.
try_lock() {
  open_shared "$1"
  if flock "${@:2}" "$opened"; then held+=("$1") && descriptors+=("$opened") && return; fi
  exec {opened}>&-
  return 1
}

# without_locks COMMAND...: run a command that may outlive the job, so it must not inherit its locks.
without_locks() {
  local descriptor
  for descriptor in "${descriptors[@]}"; do exec {descriptor}>&-; done
  exec "$@"
}

# is_held FILE: check whether this job holds the lock.
is_held() {
  local each
  for each in "${held[@]}"; do [ "$each" != "$1" ] || return 0; done
  return 1
}

# explain_wait REASON: write why this job waits, which a poll reports.
explain_wait() { [ -e queued ] && [ "$(<queued)" = "$1" ] || echo "$1" >queued; } 2>/dev/null

# acquire COUNT REASON FILE...: wait until this job holds the locks of COUNT of the files. REASON is why it waits.
acquire() {
  local wanted=$1 reason=$2 file flock_options=(-n)
  shift 2
  (($# > wanted)) || flock_options=(-w 3) # with no choice between files, let flock wait
  until
    for file; do
      ((wanted == 0)) || is_held "$file" || ! try_lock "$file" "${flock_options[@]}" || ((wanted -= 1))
    done
    ((wanted == 0))
  do
    explain_wait "$reason"
    end_orphans "$@"
    sleep 0.2
  done
}

next_check_s=0

# end_orphans FILE...: end jobs that hold one of these locks although their supervisor was killed.
end_orphans() {
  local file before
  ((SECONDS >= next_check_s)) || return
  next_check_s=$((SECONDS + 3))
  for file; do
    { read -r before <"$file"; } 2>/dev/null || continue
    is_mine "$before" && [ -e "$before/started" ] && ! [ -e "$before/ended" ] && ! supervisor_pid "$before" >/dev/null || continue
    # a job in another container seems to have no supervisor either, but its processes are not visible here
    ! grep -qzxF "LLMB_RUN_DIR=$before" /proc/[0-9]*/environ 2>/dev/null || end_lost_job "$before"
  done
}

turn=1 turn_lock=''

# enter_queue: take the number after the highest one. A job locks the file of its number as long as it waits.
enter_queue() {
  local queue file
  await_predecessor
  open_shared "$lock.queue" && queue=$opened && flock "$queue" || exit 1
  for file in "$lock".turn-*; do
    [[ ${file##*.turn-} =~ ^[1-9][0-9]{0,8}$ ]] || continue # bash would run commands in any other name
    ((${file##*.turn-} < turn)) || turn=$((${file##*.turn-} + 1))
  done
  open_shared "$lock.turn-$turn" && turn_lock=$opened && flock "$turn_lock" || exit 1
  exec {queue}>&-
  echo yes >arriving
  exec 7>&-
}

# await_predecessor: wait until the job that was submitted before this one is in the queue. Skip jobs that never get
# there.
await_predecessor() {
  local before=.
  while read -r before <"$before/after" && [ -n "$before" ]; do
    flock -w 60 -s "$before/submit" true && flock -w 60 -s "$before/arriving" true # it was started, and is in the queue
    [ ! -s "$before/arriving" ] || return
  done 2>/dev/null
}

# await_turn: wait for all jobs with a lower number, however many GPUs they need.
await_turn() {
  local other before
  for ((other = turn - 1; other > 0; other--)); do
    before=$lock.turn-$other
    [ -f "$before" ] || continue # a pipe would block
    flock -n -s "$before" true || explain_wait "$other_jobs"
    flock -s "$before" true && rm -f "$before" || exit 1
  done
}

other_jobs='waits for other jobs'
slots=("$lock")
for ((slot = 1; slot < max_parallel; slot++)); do slots+=("$lock.$slot"); done
mkdir -p "$(dirname "$lock")"
enter_queue
await_turn
acquire 1 "$other_jobs" "${slots[@]}"
acquire "$gpus_wanted" 'waits for free GPUs' "${machine_gpus[@]/#/$lock.gpu-}"
rm -f "$lock.turn-$turn" queued
exec {turn_lock}>&-

gpus='' # in the order of the machine, so that local rank 0 has the first
for number in "${machine_gpus[@]}"; do ! is_held "$lock.gpu-$number" || gpus+=${gpus:+,}$number; done
for number in "${!held[@]}"; do
  file=${held[number]}
  if { read -r before <"$file"; } 2>/dev/null; then
    ! is_mine "$before" || supervisor_pid "$before" >/dev/null || remove_container_of "$before" || exit 1
  fi
  echo "$LLMB_RUN_DIR" >"/proc/self/fd/${descriptors[number]}" # the file that is locked, whatever has its name now
done
: >begun

record_attempt start "$(uname -n)"
end_ranks_on_term
sidecars=()
at_exit() {
  end_sidecars "${sidecars[@]}"
  record_attempt end
}
trap at_exit EXIT
master_port=$(free_port $((20000 + $$ % 10000)))

engine=podman
image=nvcr.io/nvidia/nemo@sha256:0000000000000000000000000000000000000000000000000000000000000000
gpus_stated=yes
run_options=(--label llmb.run=abcde-tiny --init --network host --ipc host --cap-add SYS_NICE --workdir /work/runs/abcde-tiny --env LLMB_RUN_DIR=/work/runs/abcde-tiny --entrypoint '' --mount type=bind,source=/work/runs/abcde-tiny,target=/work/runs/abcde-tiny --mount type=bind,source=/work/cache,target=/work/cache --mount 'type=bind,"source=/a, b",target=/x,readonly')
mkdir -p /work/cache
# Explain the errors of a container engine, each with a remedy. Set above: engine, image.

# fail WHAT OUTPUT: print the output of the engine, record the explanation in one line, and exit.
fail() {
  echo "$2" >&2
  record_failure "$1: $(explain "$2")"
  exit 1
}

# one_line TEXT: print the text with one space between its words.
one_line() {
  local words
  read -rd '' -a words <<<"$1"
  echo "${words[*]}"
}

# explain_gpu_error OUTPUT: explain an error of nvidia-container-cli, which adds NVIDIA's driver to a container. The
# words before the first colon are the step that failed; see src/cli/configure.c of libnvidia-container.
explain_gpu_error() {
  local error=${1##*nvidia-container-cli: } debug="sudo nvidia-ctk config --in-place --set nvidia-container-cli.debug=/var/log/nvidia-container-toolkit.log"
  [ "$engine" != enroot ] || debug="export NVIDIA_DEBUG_LOG=1"
  error=$(one_line "${error%%$'\n'*}")
  error=${error%.}
  error=${error%: unknown} # of Docker
  if ((${#error} > 300)); then
    error=${error:0:300}
    error="${error% *} ..."
  fi
  case $error in
    *"driver rpc error: timed out"*)
      echo "the NVIDIA driver does not respond in time; keep it loaded with \`sudo nvidia-smi -pm 1\`: $error" ;;
    *"driver not loaded"*)
      echo "the NVIDIA driver is not loaded; run \`sudo modprobe nvidia\`, or restart the machine: $error" ;;
    *"load library failed: libnvidia-ml"*)
      echo "a library of the NVIDIA driver is missing on this machine; install the driver, so that \`nvidia-smi\` works: $error" ;;
    *"nvml error"* | *"driver rpc error"*)
      echo "the NVIDIA driver reports an error; check \`nvidia-smi\` on this machine: $error" ;;
    "device error: "*)
      echo "a GPU of the job does not exist; check the GPUs that \`nvidia-smi -L\` lists: $error" ;;
    "requirement error: "*)
      echo "the image does not support the GPU or its driver; use an older image, or update the driver: $error" ;;
    "mount error: "*": file exists"*)
      echo "the image contains a file of an NVIDIA driver, which containers get from this machine; remove the file from the image, or use another one: $error" ;;
    "mount error: failed to add device rules"*"not permitted"* | "mount error: failed to add device rules"*"permission denied"*)
      echo "a rootless $engine cannot give GPUs to containers through control groups; run \`sudo nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups\`: $error" ;;
    "mount error: "*)
      echo "the NVIDIA driver cannot be mounted in the container; update libnvidia-container-tools, or log the steps with \`$debug\`: $error" ;;
    "ldcache error: "*)
      echo "the libraries of the NVIDIA driver cannot be registered in the container; update libnvidia-container-tools, or log the steps with \`$debug\`: $error" ;;
    *)
      echo "the NVIDIA driver cannot be added to the container; log the steps with \`$debug\`: $error" ;;
  esac
}

# kernel_setting NAME: print the value of a setting that only some distributions have.
kernel_setting() { cat "/proc/sys/kernel/$1" 2>/dev/null; }

# explain_image_error OUTPUT: explain why an image cannot be pulled. The probe has no image. Set by `explain`: last, login.
explain_image_error() {
  case ${image:+$1} in
    *"no matching manifest for "* | *"no image found in "*"for architecture "*)
      echo "the image $image does not support the CPU of this machine; use an image for $(uname -m): $last" ;;
    *"unauthorized"* | *"authentication required"* | *"no basic auth credentials"* | *"access denied"* | *"denied: "*)
      echo "the registry of $image denied access, or the image does not exist; $login, or check workload.image" ;;
    *"short-name "*"did not resolve"*)
      echo "podman does not know the registry of $image; set \`image = \"docker.io/$image\"\` in [workload], or name another registry" ;;
    *"invalid reference format"* | *"repository name must"* | *"invalid image reference"*)
      echo "invalid image name; set \`image = \"REGISTRY/NAME:TAG\"\` in [workload]" ;;
    *"manifest unknown"* | *"not found"* | *"no such image"* | *"name unknown"* | *"image not known"*)
      echo "the image $image does not exist; set \`image = \"REGISTRY/NAME:TAG\"\` in [workload] to one that does" ;;
    *"no such host"* | *"could not resolve host"* | *"i/o timeout"* | *"connection refused"* | *"network is unreachable"* | *"name resolution"* | *"deadline exceeded"* | *"TLS handshake timeout"* | *"Client.Timeout"*)
      echo "cannot reach the registry of $image; check the network and its proxies: $last" ;;
    *) echo "$last" ;;
  esac
}

# Each of the next functions explains the errors of one kind. It returns 1 if OUTPUT is of another kind.

# explain_gpu_access OUTPUT: explain why the engine cannot give GPUs to a container.
explain_gpu_access() {
  case $1 in
    *"could not select device driver"*)
      echo "$engine cannot give GPUs to containers; install nvidia-container-toolkit, then run \`sudo nvidia-ctk runtime configure\` and restart $engine" ;;
    *"unresolvable CDI devices"*)
      echo "$engine cannot give GPUs to containers; install nvidia-container-toolkit, then run \`sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml\`" ;;
    *"not found: nvidia-container-cli"*)
      echo "$engine cannot give GPUs to containers; install libnvidia-container-tools" ;;
    *"nvidia-container-cli: "*)
      explain_gpu_error "$1" ;;
    *) return 1 ;;
  esac
}

# explain_missing_program OUTPUT: explain which program or option is missing, and where. Set by `explain`: other.
explain_missing_program() {
  local missing='' package
  case $1 in
    *"$engine: command not found"*)
      echo "$engine is not installed on this machine; install it, or set \`runtime = \"$other\"\` in [target], or to another engine that is installed" ;;
    *"command not found: "*) # of enroot
      [[ $1 =~ "command not found: "([^[:space:],]+) ]] && missing=${BASH_REMATCH[1]}
      case $missing in
        mksquashfs | unsquashfs) package=squashfs-tools ;;
        awk) package=gawk ;;
        *) package=$missing ;;
      esac
      echo "$missing, which $engine needs, is not installed on this machine; install $package with the machine's package manager" ;;
    *"unknown flag: "* | *"unknown shorthand flag: "*) # then Docker prints how to use it
      [[ $1 =~ unknown\ (shorthand\ )?flag:\ ([^$'\n']+) ]]
      echo "$engine does not know ${BASH_REMATCH[2]}; remove it from \`options\` in [target.container], or update $engine" ;;
    *": command not found"*) # of bash
      [[ $1 =~ ([^[:space:]:]+)": command not found" ]] && missing=${BASH_REMATCH[1]}
      echo "$missing is not installed on this machine or in the image $image; install it there" ;;
    *"no command specified"*) # of Docker, from which enroot imports the image
      echo "the image $image has no command, without which enroot cannot import it from Docker; run \`docker commit --change 'CMD [\"bash\"]' \$(docker create $image bash) NAME:TAG\`, and set \`image = \"NAME:TAG\"\` in [workload]" ;;
    *) return 1 ;;
  esac
}

# explain_daemon_error OUTPUT: explain why Docker's daemon does not respond.
explain_daemon_error() {
  local remedy
  case $1 in
    *"permission denied"*socket* | *"permission denied"*docker.sock*)
      echo "no permission for Docker's socket; run \`sudo usermod -aG docker \$USER\` and log in again" ;;
    *"Cannot connect to the Docker daemon"* | *"docker daemon is not running"* | *"failed to connect to the docker API"*)
      remedy="start it with \`sudo systemctl start docker\`"
      if [[ $1 =~ (daemon|API)" at "([^[:space:];]+) ]] && [[ ${BASH_REMATCH[2]%.} != unix:///var/run/docker.sock ]]; then
        remedy="start the one at ${BASH_REMATCH[2]%.}, or correct DOCKER_HOST or the context that \`docker context ls\` marks"
      fi
      echo "the Docker daemon is not running; $remedy" ;;
    *"no response from docker info"*) # of the probe
      echo "the Docker daemon does not respond; check \`sudo systemctl status docker\`" ;;
    *) return 1 ;;
  esac
}

# explain_machine_error OUTPUT: explain what this machine or [target] forbids. Set by `explain`: last, free_space.
explain_machine_error() {
  local remedy
  case $1 in
    *"failed to create user namespace: no space left on device"*)
      echo "this machine allows no further user namespaces, which $engine needs; run \`sudo sysctl -w user.max_user_namespaces=65536\`" ;;
    *"failed to create user namespace: operation not permitted"* | *"failed to create user namespace: permission denied"*)
      remedy="check \`grep . /proc/sys/kernel/*userns*\`"
      [ "$(kernel_setting apparmor_restrict_unprivileged_userns)" != 1 ] ||
        remedy="run \`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\`, or install $engine's AppArmor profile"
      [ "$(kernel_setting unprivileged_userns_clone)" != 0 ] || remedy="run \`sudo sysctl -w kernel.unprivileged_userns_clone=1\`"
      echo "this machine does not allow users to start containers; $remedy" ;;
    *"no space left on device"*)
      echo "the disk on which $engine keeps its images is full; free space, for example with $free_space" ;;
    *"error response from daemon: network "*" not found"* | *"network not found"*)
      echo "the network in target.container.network does not exist; use one that \`$engine network ls\` lists, or \"host\"" ;;
    *"bind source path does not exist"* | *"statfs "*"no such file"* | *"failed to mount"*"no such file"*)
      echo "a path of [mounts] does not exist; create it, or correct [mounts]: $last" ;;
    *"rlimit"*)
      echo "this machine does not allow the limits in target.container.ulimits; set \`ulimits = {}\` in [target.container], or lower limits" ;;
    *) return 1 ;;
  esac
}

# explain OUTPUT: print "PROBLEM; REMEDY" for the output of the engine, or its end if the error is unknown.
explain() {
  local last registry='' login other=podman cache folder=${file:-$PWD/}
  local free_space="\`$engine system prune\`"
  case ${image%"${image#*/}"} in # the first part and "/"; without a registry, an image is from the default one
    *.*/ | *:*/ | localhost/) registry=" ${image%%/*}" ;;
  esac
  login="log in with \`$engine login$registry\`"
  [ "$engine" != podman ] || other=docker
  if [ "$engine" = enroot ]; then
    printf -v cache %q "${ENROOT_CACHE_PATH:-${XDG_CACHE_HOME:-$HOME/.cache}/enroot}"
    printf -v folder %q "${folder%/*}"
    login="add the credentials to ~/.config/enroot/.credentials" free_space="\`rm -rf $cache\`, and check \`df -h $folder\`"
  fi
  shopt -s nocasematch
  # without the id of the container, and the usage that Docker adds
  last=$(one_line "$(sed -E "/^([0-9a-f]{64}|Usage:.*|(Run|See) '.* --help'.*)\$/d" <<<"$1")")
  [ -n "$last" ] || last=$(one_line "$1")
  if ((${#last} > 300)); then
    last=${last: -300}
    last="... ${last#* }" # no part of a word
  fi
  explain_gpu_access "$1" || explain_missing_program "$1" || explain_daemon_error "$1" || explain_machine_error "$1" ||
    explain_image_error "$1"
}
# place_secrets: write the secrets to a file, which the container reads and removes. So no process list and no engine
# shows them.
place_secrets() {
  local name
  for name in "${secrets[@]}"; do (umask 077 && printf 'export %s=%q\n' "$name" "${!name}" >>.secrets); done
}
# Run each phase in a container of its own. Set above: engine (docker or podman), image, run_options.
container='' engine_was_down=''

# choose_image: resolve the name of the image once, so that all phases use the same image even if its tag moves.
choose_image() {
  image_id=$("$engine" image inspect --format '{{.Id}}' "$image" 2>image.err) || fail "image $image" "$(<image.err)"
  {
    echo "image_id=$image_id"
    "$engine" image inspect --format '{{range .RepoDigests}}image_digest={{.}}{{"\n"}}{{end}}' "$image_id"
  } >>provenance
}

# choose_user: run as the user of this job, to whom the files then belong. In a rootless engine, that user is root in
# the container. A daemon with userns-remap would give the container other users, who cannot write the files.
choose_user() {
  local security
  case $engine in
    docker) security=$(docker info --format '{{json .SecurityOptions}}') ;;
    podman) security=$(podman info --format 'rootless={{.Host.Security.Rootless}}') ;;
  esac
  [[ $security != *name=userns* ]] || run_options+=(--userns host)
  if [[ $security = *name=rootless* || $security = *rootless=true* ]]; then
    run_options+=(--user 0:0)
  else
    run_options+=(--user "$(id -u):$(id -g)")
    [ "$(id -u)" = 0 ] || run_options+=(--env "HOME=$LLMB_RUN_DIR/home" --env "USER=$(id -un)") # the image lacks this user
    mkdir -p home
  fi
}

choose_gpus() {
  local gpu
  visible_gpus=''
  if [ -n "$gpus_stated" ]; then
    visible_gpus=$gpus # of an unknown kind: target.container.options passes all of them to the container
  elif [ -z "$gpus" ]; then
    run_options+=(--env NVIDIA_VISIBLE_DEVICES=void) # an image may request all GPUs
  elif [ "$engine" = docker ]; then
    run_options+=(--gpus "\"device=$gpus\"")
  else
    for gpu in ${gpus//,/ }; do run_options+=(--device "nvidia.com/gpu=$gpu"); done
  fi
}

# contained PHASE: run a phase in a container.
contained() {
  local output status=''
  container=llmb-$LLMB_JOB_ID-$1
  remove_container "$engine" "$container" '' >/dev/null 2>&1 # of a killed attempt
  echo "$engine $container ${DOCKER_HOST-}" >container
  rm -f finished
  place_secrets
  output=$(without_locks "$engine" run --detach --name "$container" "${run_options[@]}" "$image_id" \
    bash "$LLMB_RUN_DIR/job.sh" "$1" "$master_port" "$visible_gpus" 2>&1) ||
    # without an answer of the engine, the container may run: then wait for it
    { remove_container_of . 2>/dev/null && fail "phase $1" "$output"; }
  await_container
  [ "$status" = 0 ] || explain_end "$1" "$status"
  remove_container_of . || exit 1
  container=''
  [ "$status" = 0 ] || exit "$status"
}

# await_container: set `status` to the exit code of the container. If the daemon dies, the container lives on, so retry
# until the daemon is back. No file holds the output, because the disk may be full.
await_container() {
  local doubts=0 waited output
  until [ -n "$status" ]; do
    exec {waited}< <(without_locks "$engine" wait "$container" 2>&1)
    wait $! # SIGTERM interrupts it
    output=$(cat <&"$waited")
    exec {waited}<&-
    status=${output##*$'\n'}
    if [[ ${output,,} = *"no such container"* ]]; then
      status=1 # explain_end names the cause
    elif ! [[ $status =~ ^[0-9]+$ ]]; then
      status=''
      [ -n "$engine_was_down" ] || echo "$engine does not respond; the container keeps running, and llmb retries" >&2
      engine_was_down=yes
      sleep 1
    elif [ "$status" = 0 ] && [ ! -e finished ]; then # a daemon that has just restarted may report 0 too early
      ((doubts += 1))
      ((doubts > 10)) && status=137 || status=''
      sleep 0.5
    fi
  done
}

# explain_end PHASE EXIT_CODE: record why the phase failed, unless a failed rank has recorded it.
explain_end() {
  local output
  output=$("$engine" logs --tail 20 "$container" 2>&1)
  echo "$output" >&2
  case $output in
    *"exec bash failed: No such file"* | *"failed to exec pid1: No such file"*) # of Docker and Podman
      record_failure "phase $1: the image has no bash, which starts the ranks" ;;
    *"marked for removal"* | *[Nn]"o such container"*)
      record_failure "phase $1: its container $container was removed by another process" ;;
  esac
  if [ -n "$engine_was_down" ] && (($2 > 128)); then
    record_failure "phase $1: ended by a restart of the Docker daemon; set \"live-restore\": true in its daemon.json to keep containers running"
  fi
  (exit_with_reason "phase $1, its container" "$2")
  if [ "$("$engine" container inspect --format '{{.State.OOMKilled}}' "$container")" = true ]; then
    echo "$(<failed); the kernel killed a process, because the container was out of memory" >failed
  fi
}

# stop_container: send SIGTERM to the container, and SIGKILL after the grace.
stop_container() {
  [ -z "$container" ] || "$engine" stop -t $((grace_s + 5)) "$container" >/dev/null 2>&1
  remove_container_of .
}
trap 'end_ranks; stop_container; exit 143' TERM

choose_image
choose_user
choose_gpus

outside phase split 1 split
contained train
