# What a container engine says when it refuses, and what to do about it.

refuse() { # what could not be had, what the engine said: one line, and the end
  echo "$2" >&2
  tell "$1: $(explain "$2")"
  exit 1
}

explain() { # what the engine said
  local last login="\`$engine login ${image%%/*}\`"
  [ "$engine" != enroot ] || login="put it into ~/.config/enroot/.credentials"
  shopt -s nocasematch
  last=$(tr -s '[:space:]' ' ' <<<"$1" | tail -c 300)
  case $1 in
    *"could not select device driver"* | *"unresolvable CDI devices"* | *"not found: nvidia-container-cli"*)
      echo "$engine cannot give GPUs to containers; install nvidia-container-toolkit, then \`sudo nvidia-ctk runtime configure\` and start $engine again" ;;
    *"nvidia-container-cli: "*)
      echo "the NVIDIA driver refuses; see that nvidia-smi works here: $last" ;;
    *"command not found"*)
      echo "$engine is not installed here; install it, or set target.runtime to what is there" ;;
    *"permission denied"*socket* | *"permission denied"*docker.sock*)
      echo "you may not use Docker's socket; run \`sudo usermod -aG docker \$USER\` and log in again" ;;
    *"Cannot connect to the Docker daemon"* | *"docker daemon is not running"*)
      echo "Docker's daemon does not run; start it with \`sudo systemctl start docker\`" ;;
    *"no space left on device"*)
      echo "the disk is full where $engine keeps its images; free some there, as with \`$engine system prune\`" ;;
    *"unauthorized"* | *"authentication required"* | *"no basic auth credentials"* | *"access denied"* | *"denied: "*)
      echo "the registry of $image wants a login, or has no such image; $login, or see workload.image" ;;
    *"invalid reference format"* | *"repository name must"* | *"invalid image reference"*)
      echo "that is no name of an image; see workload.image" ;;
    *"manifest unknown"* | *"not found"* | *"no such image"* | *"name unknown"* | *"image not known"*)
      echo "there is no image $image; see workload.image" ;;
    *"no such host"* | *"could not resolve host"* | *"i/o timeout"* | *"connection refused"* | *"network is unreachable"* | *"name resolution"* | *"deadline exceeded"* | *"TLS handshake timeout"* | *"Client.Timeout"*)
      echo "the registry of $image cannot be reached; see to the network and its proxies: $last" ;;
    *"bind source path does not exist"* | *"statfs "*"no such file"* | *"failed to mount"*"no such file"*)
      echo "a path of [mounts] is not there: $last" ;;
    *"rlimit"*)
      echo "this machine does not allow the limits in target.container.ulimits; set it to {}, or to lower ones" ;;
    *) echo "$last" ;;
  esac
}
