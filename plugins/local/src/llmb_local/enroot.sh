# Runs all phases in one container of enroot, which has no namespace for processes: each phase is a process group.
container=llmb-$LLMB_JOB_ID phase_group=''
trap 'end_ranks; end_phase; exit 143' TERM
trap 'end_container_of .' EXIT

create() {
  local said
  remove_container enroot "$container" '' >/dev/null 2>&1 # of an attempt that was cut off
  echo "enroot $container" >container
  { echo "image=$image" && sed 's/^/image_sha256=/' "$file.sha256"; } >>provenance
  said=$(enroot create --name "$container" "$file" 2>&1) || refuse "image $image" "$said"
}

contained() { # phase
  local status=0 shown=$gpus choice=''
  [ -z "$gpus_stated" ] || shown='' choice=$gpus # what they are is not known: target.container.options shows them all
  place_secrets
  enroot start --rw --env "LLMB_RUN_DIR=$LLMB_RUN_DIR" --env "NVIDIA_VISIBLE_DEVICES=${shown:-void}" \
    "${start_options[@]}" "$container" bash "$LLMB_RUN_DIR/job.sh" "$1" "$master_port" "$choice" >started.log 2>&1 &
  phase_group=$!
  wait "$phase_group" || status=$?
  end_phase # what it may have left behind
  [ "$status" = 0 ] && return
  [ -e failed ] || refuse "phase $1" "$(<started.log)"
  exit "$status"
}

end_phase() { # a while after it was told, since it then tells its ranks
  [ -z "$phase_group" ] || end_groups $((grace_s + 2)) "$phase_group"
}

create
