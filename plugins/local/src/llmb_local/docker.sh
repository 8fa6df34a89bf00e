# Runs each phase in a container of its own. Set above: engine (docker or podman), image, run_options.
container='' went_away=''

choose_image() { # the same one for every phase, whatever its name comes to mean meanwhile
  image_id=$("$engine" image inspect --format '{{.Id}}' "$image" 2>said) || refuse "image $image" "$(<said)"
  {
    echo "image_id=$image_id"
    "$engine" image inspect --format '{{range .RepoDigests}}image_digest={{.}}{{"\n"}}{{end}}' "$image_id"
  } >>provenance
}

choose_user() { # results belong to whoever runs this; without root's rights, that is who is root in a container
  local rootless
  case $engine in
    docker) rootless=$(docker info --format '{{json .SecurityOptions}}') ;;
    podman) rootless=$(podman info --format 'rootless={{.Host.Security.Rootless}}') ;;
  esac
  if [[ $rootless = *name=rootless* || $rootless = *rootless=true* ]]; then
    run_options+=(--user 0:0)
  else
    run_options+=(--user "$(id -u):$(id -g)")
    [ "$(id -u)" = 0 ] || run_options+=(--env "HOME=$LLMB_RUN_DIR/home" --env "USER=$(id -un)") # unknown in the image
    mkdir -p home
  fi
}

choose_gpus() {
  local gpu
  choice=''
  if [ -n "$gpus_stated" ]; then
    choice=$gpus # what they are is not known: target.container.options shows them all
  elif [ -z "$gpus" ]; then
    run_options+=(--env NVIDIA_VISIBLE_DEVICES=void) # an image may ask for all
  elif [ "$engine" = docker ]; then
    run_options+=(--gpus "\"device=$gpus\"")
  else
    for gpu in ${gpus//,/ }; do run_options+=(--device "nvidia.com/gpu=$gpu"); done
  fi
}

contained() { # phase
  local said status=''
  container=llmb-$LLMB_JOB_ID-$1
  remove_container "$engine" "$container" '' >/dev/null 2>&1 # of an attempt that was cut off
  echo "$engine $container ${DOCKER_HOST-}" >container
  rm -f finished
  place_secrets
  said=$(without_locks "$engine" run --detach --name "$container" "${run_options[@]}" "$image_id" \
    bash "$LLMB_RUN_DIR/job.sh" "$1" "$master_port" "$choice" 2>&1) || { end_container_of . && refuse "phase $1" "$said"; }
  await_container
  [ "$status" = 0 ] || explain_end "$1" "$status"
  end_container_of . || exit 1
  container=''
  [ "$status" = 0 ] || exit "$status"
}

await_container() { # sets status. When the daemon dies the container lives on, and is asked for until that is back
  local doubts=0
  until [ -n "$status" ]; do
    (without_locks "$engine" wait "$container") >waited 2>&1 &
    wait $!
    status=$(tail -n 1 waited)
    if grep -qi "no such container" waited; then
      status=1
      tell "its container $container was removed by somebody else"
    elif ! [[ $status =~ ^[0-9]+$ ]]; then
      status=''
      [ -n "$went_away" ] || echo "$engine does not answer; the container goes on, and is asked for again" >&2
      went_away=yes
      sleep 1
    elif [ "$status" = 0 ] && [ ! -e finished ]; then # a daemon that has just come back says so before it knows
      ((doubts += 1))
      ((doubts > 10)) && status=137 || status=''
      sleep 0.5
    fi
  done
}

explain_end() { # phase, exit status: a rank that failed has told of itself, but not what killed it
  local said
  said=$("$engine" logs --tail 20 "$container" 2>&1)
  echo "$said" >&2
  [[ $said != *"exec bash failed"* ]] || tell "phase $1: the image has no bash, which starts the ranks"
  if [ -n "$went_away" ] && (($2 > 128)); then
    tell "phase $1: ended when Docker's daemon started again; with \"live-restore\": true in its daemon.json a run goes on"
  fi
  (tell_end "phase $1, its container" "$2")
  if [ "$("$engine" container inspect --format '{{.State.OOMKilled}}' "$container")" = true ]; then
    echo "$(<failed); the kernel killed it, since the container had no memory left (exit status 137)" >failed
  fi
}

stop_container() { # TERM to what runs in it, KILL to what does not heed that
  [ -z "$container" ] || "$engine" stop -t $((grace_s + 5)) "$container" >/dev/null 2>&1
  end_container_of .
}
trap 'end_ranks; stop_container; exit 143' TERM

choose_image
choose_user
choose_gpus
