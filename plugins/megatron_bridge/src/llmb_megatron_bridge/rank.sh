# rank.sh COMMAND...: runs one rank, told which one it is by the rank environment that every scheduler gives.
#
#   NUMA_GPUS   so many GPUs of a node share a NUMA node: the rank is bound to its processors and memory
#   SCRIPTS     a folder to put in front of PYTHONPATH
if [ -n "${SCRIPTS-}" ]; then export PYTHONPATH=$SCRIPTS${PYTHONPATH:+:$PYTHONPATH}; fi

binding=()
if [ -n "${NUMA_GPUS-}" ]; then
  node=$((LLMB_LOCAL_RANK / NUMA_GPUS))
  if [ -d "/sys/devices/system/node/node$node" ] && command -v numactl >/dev/null; then
    binding=(numactl "--cpunodebind=$node" "--membind=$node")
  else
    echo "rank $LLMB_RANK is not bound: no numactl, or no NUMA node $node, on this machine" >&2
  fi
fi
exec "${binding[@]}" "$@"
