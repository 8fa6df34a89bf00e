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
