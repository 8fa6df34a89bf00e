# Prints what this machine has as key=value lines. Nothing is waited for longer than a few seconds.
# Set above: engines to look for, the best first; ask_all of them, look_for_gpus (yes or nothing).
patience_s=10

ask_docker() {
  local said format='{{.ServerVersion}}|{{.DockerRootDir}}|{{json .Runtimes}}'
  said=$(timeout "$patience_s" docker info --format "$format" 2>&1) || : "${said:=it does not answer}"
  if [[ $said != [0-9]*'|'* ]]; then
    echo "docker.refusal=$(explain "$said")"
    return 1
  fi
  echo "docker.version=${said%%|*}"
  said=${said#*|}
  echo "docker.folder=${said%%|*}"
  [[ $said != *nvidia* ]] || echo "nvidia.toolkit=a runtime of Docker"
}

ask_podman() {
  local said
  if ! said=$(timeout "$patience_s" podman info --format '{{.Version.Version}}|{{.Store.GraphRoot}}' 2>&1); then
    echo "podman.refusal=$(explain "$said")"
    return 1
  fi
  echo "podman.version=${said%%|*}"
  echo "podman.folder=${said#*|}"
}

ask_enroot() { echo "enroot.version=$(timeout "$patience_s" enroot version)"; }

ask_engines() { # one after the other, until one works where one is enough
  local engine
  for engine in "${engines[@]}"; do
    if command -v "$engine" >/dev/null && "ask_$engine" && [ -z "$ask_all" ]; then return; fi
  done
}

ask_nvidia() {
  local query=index,name,memory.total,memory.used,driver_version said number rest hint
  for hint in nvidia-container-runtime-hook nvidia-ctk nvidia-container-cli; do
    ! command -v "$hint" >/dev/null || echo "nvidia.toolkit=$hint"
  done
  ! ls /etc/cdi/nvidia* /var/run/cdi/nvidia* >/dev/null 2>&1 || echo "nvidia.toolkit=CDI"
  if ! command -v nvidia-smi >/dev/null; then
    echo "nvidia-smi.refusal=nvidia-smi is not installed"
  elif said=$(timeout "$patience_s" nvidia-smi --query-gpu=$query --format=csv,noheader,nounits 2>&1); then
    while IFS=, read -r number rest; do echo "gpu.${number// /}=${rest# }"; done <<<"$said"
  else
    echo "nvidia-smi.refusal=nvidia-smi fails: $(tr -s '[:space:]' ' ' <<<"${said:-it does not answer}" | head -c 200)"
  fi
}

echo "machine=$HOSTNAME"
ask_engines &
[ -z "$look_for_gpus" ] || ask_nvidia &
wait
