# Run all phases in one enroot container. Enroot has no process namespace, so each phase is a process group.
# Set above: image, file, gpus_stated, start_options.
container=llmb-$LLMB_JOB_ID phase_group=''
trap 'end_ranks; end_phase; exit 143' TERM
trap 'remove_container_of .; at_exit' EXIT

create() {
  local output
  remove_container enroot "$container" '' >/dev/null 2>&1 # of a killed attempt
  echo "enroot $container" >container
  {
    echo "image=$image"
    sed 's/^\([0-9a-f]*\).*/image_sha256=\1/' "$file.sha256" 2>/dev/null || stat -Lc 'image_modified=%y' "$file"
  } >>provenance
  output=$(enroot create --name "$container" "$file" 2>&1) || fail "image $image" "$output"
}

# write_configuration: give containers CUDA, like Docker. By default, enroot mounts only nvidia-smi. The function
# `environ` is called after enroot has read the variables of the image and of the site. Those of the command line come
# last.
write_configuration() {
  cat >enroot.conf <<'END'
environ() {
  grep -q '^[[:space:]]*NVIDIA_DRIVER_CAPABILITIES=.' "$ENROOT_ENVIRON" || echo NVIDIA_DRIVER_CAPABILITIES=compute,utility
}
END
}

# contained PHASE: run a phase in the container.
contained() {
  local status=0 devices=$gpus visible_gpus='' gpu_options=()
  [ -z "$gpus_stated" ] || devices='' visible_gpus=$gpus # of an unknown kind: target.container.options passes all of them
  [ -z "$gpus" ] || gpu_options=(--conf "$LLMB_RUN_DIR/enroot.conf")
  place_secrets
  enroot start --rw --env "LLMB_RUN_DIR=$LLMB_RUN_DIR" --env "NVIDIA_VISIBLE_DEVICES=${devices:-void}" \
    "${gpu_options[@]}" "${start_options[@]}" "$container" bash "$LLMB_RUN_DIR/job.sh" "$1" "$master_port" "$visible_gpus" >started.log 2>&1 &
  phase_group=$!
  wait "$phase_group" || status=$?
  end_phase # the phase may have left processes
  [ "$status" = 0 ] && return
  [ -e failed ] || fail "phase $1" "$(<started.log)"
  exit "$status"
}

# end_phase: end the phase, with two more seconds of grace than its ranks, which it ends itself.
end_phase() {
  [ -z "$phase_group" ] || end_groups $((grace_s + 2)) "$phase_group"
}

create
write_configuration
