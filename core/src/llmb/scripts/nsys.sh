# nsys.sh REPORT RANKS METRICS COMMAND... -- TRAINING...: runs the training under COMMAND on the ranks named (0,1,8, in
# this order), which write REPORT_<node>_<local rank>.nsys-rep, and as it is on the others. METRICS, an option or nothing,
# is for the first of these ranks on each node alone: a GPU's metrics can be read by one process.
report=$1 ranks=$2 metrics=$3
shift 3
profiler=()
while [ "$1" != -- ]; do
  profiler+=("$1")
  shift
done
shift
if [[ ,$ranks, != *,$LLMB_RANK,* ]]; then exec "$@"; fi
for rank in ${ranks//,/ }; do
  [ $((rank / LLMB_LOCAL_WORLD_SIZE)) != "$LLMB_NODE_RANK" ] || break
done
if [ "$rank" = "$LLMB_RANK" ] && [ -n "$metrics" ]; then profiler+=("$metrics"); fi
mkdir -p "${report%/*}" || exit
exec "${profiler[@]}" --output "${report}_${LLMB_NODE_RANK}_$LLMB_LOCAL_RANK" "$@"
