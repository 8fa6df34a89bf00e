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
