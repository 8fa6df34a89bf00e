# nsys.sh REPORT RANKS METRICS COMMAND... -- TRAINING...: run TRAINING under COMMAND on the ranks RANKS (0,1,8,
# ascending), and without a profiler on the others. Each profiled rank writes REPORT_<node>_<local rank>.nsys-rep.
# METRICS, an option or empty, is added for the first of these ranks on each node, because only one process can read
# the metrics of a GPU.
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
