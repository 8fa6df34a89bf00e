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
