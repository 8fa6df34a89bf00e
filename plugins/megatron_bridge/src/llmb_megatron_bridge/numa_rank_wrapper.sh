# numa_rank_wrapper.sh COMMAND...
# Run the command of one rank, bound to the processors and memory of one NUMA node. Read LLMB_LOCAL_RANK and these:
#
#   NUMA_GPUS   number of GPUs per NUMA node; unset: no binding
#   SCRIPTS     folder to prepend to PYTHONPATH; unset: none
if [ -n "${SCRIPTS-}" ]; then export PYTHONPATH=$SCRIPTS${PYTHONPATH:+:$PYTHONPATH}; fi

binding=()
if [ -n "${NUMA_GPUS-}" ]; then
  node=$((LLMB_LOCAL_RANK / NUMA_GPUS))
  if [ -d "/sys/devices/system/node/node$node" ] && command -v numactl >/dev/null; then
    binding=(numactl "--cpunodebind=$node" "--membind=$node")
  else
    echo "rank $LLMB_RANK is not bound: numactl or NUMA node $node does not exist on this machine" >&2
  fi
fi
exec "${binding[@]}" "$@"
