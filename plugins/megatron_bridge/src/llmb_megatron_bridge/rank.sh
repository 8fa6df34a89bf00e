# rank.sh COMMAND...: runs one rank, told which one it is by the rank environment that every scheduler gives.
#
#   NUMA_GPUS       so many GPUs of a node share a NUMA node: the rank is bound to its processors and memory
#   SCRIPTS         a folder to put in front of PYTHONPATH
#   NSYS            the profiler and its options, for the ranks of NSYS_RANKS ("all", or "0,8,9" in order); of those of
#   NSYS_METRICS    a node, the first has these options too: GPU metrics are taken once for all its GPUs
command=("$@")
if [ -n "${SCRIPTS-}" ]; then export PYTHONPATH=$SCRIPTS${PYTHONPATH:+:$PYTHONPATH}; fi

if [ -n "${NUMA_GPUS-}" ]; then
  node=$((LLMB_LOCAL_RANK / NUMA_GPUS))
  if [ -d "/sys/devices/system/node/node$node" ] && command -v numactl >/dev/null; then
    command=(numactl "--cpunodebind=$node" "--membind=$node" "${command[@]}")
  else
    echo "rank $LLMB_RANK is not bound: no numactl, or no NUMA node $node, on this machine" >&2
  fi
fi

profiled= first=
for rank in ${NSYS_RANKS//,/ }; do
  if [ "$rank" = all ]; then profiled=yes first=0 && break; fi
  if [ "$rank" = "$LLMB_RANK" ]; then profiled=yes; fi
  if [ -z "$first" ] && [ $((rank / LLMB_LOCAL_WORLD_SIZE)) = "$LLMB_NODE_RANK" ]; then
    first=$((rank % LLMB_LOCAL_WORLD_SIZE))
  fi
done
[ -n "$profiled" ] || exec "${command[@]}"

report=$LLMB_RUN_DIR/nsys_profile/profile_${LLMB_JOB_ID}_${LLMB_NODE_RANK}_$LLMB_LOCAL_RANK
[ "$first" = "$LLMB_LOCAL_RANK" ] || NSYS_METRICS=
mkdir -p "${report%/*}" || exit
# shellcheck disable=SC2086 # both are lists of options without blanks
$NSYS ${NSYS_METRICS-} --output "$report" "${command[@]}" || exit
if [ ! -s "$report.nsys-rep" ]; then
  echo "the training ended well, but nsys wrote no $report.nsys-rep" >&2
  exit 1
fi
