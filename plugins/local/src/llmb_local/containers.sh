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
