# Print what this machine has as key=value lines. No engine or driver is waited for longer than timeout_s.
# Set above: engines (best first), probe_all ("yes": all of them, empty: until one works), probe_gpus ("yes" or empty).
timeout_s=10

probe_docker() {
  local output format='{{.ServerVersion}}|{{.DockerRootDir}}|{{json .Runtimes}}'
  output=$(timeout "$timeout_s" docker info --format "$format" 2>&1) || # 124 is that of timeout
    { [ $? != 124 ] && [ -n "$output" ]; } || output="no response from docker info"
  if [[ ${output##*$'\n'} != [0-9]*'|'* ]]; then
    echo "docker.error=$(explain "$output")"
    return 1
  fi
  output=${output##*$'\n'} # the lines before are warnings
  echo "docker.version=${output%%|*}"
  output=${output#*|}
  echo "docker.folder=${output%%|*}"
  [[ $output != *nvidia* ]] || echo "nvidia.toolkit=a runtime of Docker"
}

probe_podman() {
  local output
  if ! output=$(timeout "$timeout_s" podman info --format '{{.Version.Version}}|{{.Store.GraphRoot}}' 2>&1); then
    echo "podman.error=$(explain "$output")"
    return 1
  fi
  output=${output##*$'\n'} # the lines before are warnings
  echo "podman.version=${output%%|*}"
  echo "podman.folder=${output#*|}"
}

probe_enroot() { echo "enroot.version=$(timeout "$timeout_s" enroot version)"; }

probe_engines() {
  local engine
  for engine in "${engines[@]}"; do
    if command -v "$engine" >/dev/null && "probe_$engine" && [ -z "$probe_all" ]; then return; fi
  done
}

probe_nvidia() {
  local query=index,name,memory.total,memory.used,driver_version visible=() output number rest tool
  for tool in nvidia-container-runtime-hook nvidia-ctk nvidia-container-cli; do
    ! command -v "$tool" >/dev/null || echo "nvidia.toolkit=$tool"
  done
  ! ls /etc/cdi/nvidia* /var/run/cdi/nvidia* >/dev/null 2>&1 || echo "nvidia.toolkit=CDI"
  # the user may have left the other GPUs to another program; nvidia-smi does not know the names of MIG instances
  if [[ ${CUDA_VISIBLE_DEVICES-} =~ ^([0-9]+|GPU-[0-9a-f-]+)(,([0-9]+|GPU-[0-9a-f-]+))*$ ]]; then
    visible=("--id=$CUDA_VISIBLE_DEVICES")
    echo "gpus.visible=$CUDA_VISIBLE_DEVICES"
  fi
  if ! command -v nvidia-smi >/dev/null; then
    echo "nvidia-smi.error=nvidia-smi is not installed"
  elif output=$(timeout "$timeout_s" nvidia-smi --query-gpu=$query --format=csv,noheader,nounits "${visible[@]}" 2>&1); then
    while IFS=, read -r number rest; do echo "gpu.${number// /}=${rest# }"; done < <(echo "$output")
  else
    echo "nvidia-smi.error=nvidia-smi fails: $(echo "${output:-no response}" | tr -s '[:space:]' ' ' | head -c 200)"
  fi
}

echo "machine=$HOSTNAME"
probe_engines &
[ -z "$probe_gpus" ] || probe_nvidia &
wait
