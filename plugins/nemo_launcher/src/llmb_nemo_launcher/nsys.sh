# nsys.sh PREFIX RANKS METRICS OPTION... -- COMMAND: runs the command under nsys on the ranks named (0,1,2), which write
# PREFIX_<node>_<local rank>.nsys-rep, and as it is on the others. METRICS, an option or nothing, is for the first rank
# of each node alone: a GPU's metrics can be read by one process.
prefix=$1 ranks=$2 metrics=$3
shift 3
options=()
while [ "$1" != -- ]; do
  options+=("$1")
  shift
done
shift
if [[ ,$ranks, != *,$LLMB_RANK,* ]]; then exec "$@"; fi
report=(--output "${prefix}_${LLMB_NODE_RANK}_$LLMB_LOCAL_RANK")
if [ "$LLMB_LOCAL_RANK" = 0 ] && [ -n "$metrics" ]; then report+=("$metrics"); fi
exec nsys profile "${report[@]}" "${options[@]}" "$@"
