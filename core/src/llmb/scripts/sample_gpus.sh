# sample_gpus.sh INTERVAL_S: print a line for each GPU of the job on this node every INTERVAL_S seconds, until SIGUSR1.
# Each line begins with the node and its kind: "gpu" with the values of `fields`, "link" for an NVLink error counter that
# is not 0 ("link end" for the second reading), "cost" with the CPU time of all programs here, or "error". It never
# fails.
interval_s=$1 node=$(uname -n) begin=$SECONDS
fields=timestamp,index,power.draw,clocks.sm,clocks.mem,temperature.gpu,REASONS,memory.used,utilization.gpu
fields+=,ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total

print_link_errors() {
  nvidia-smi nvlink -e 2>/dev/null |
    sed -n "s/^GPU \([0-9]*\):.*/\1/;T link;h;d;:link;/: 0\$/d;G;s/^[ \t]*Link \([0-9]*\): \(.*\) Errors: \([0-9]*\)\n\([0-9]*\)\$/$node, $1, \4, \1, \2, \3/p"
}

trap 'exit 0' USR1 TERM
if ! command -v nvidia-smi >/dev/null; then
  echo "$node, error, nvidia-smi not found"
  exit 0
fi
for reasons in clocks_event_reasons clocks_throttle_reasons; do # drivers before 535 know the second name only
  options=("--query-gpu=${fields/REASONS/$reasons.active}" "--format=csv,noheader,nounits")
  [ -z "${CUDA_VISIBLE_DEVICES-}" ] || options+=("--id=$CUDA_VISIBLE_DEVICES") # the GPUs of the job
  answer=$(nvidia-smi "${options[@]}" 2>&1) && break
  [ "$reasons" = clocks_event_reasons ] || { echo "$node, error, ${answer%%$'\n'*}" && exit 0; }
done
print_link_errors link
exec {values}< <(exec nvidia-smi "${options[@]}" "--loop=$interval_s" 2>&1)
sampler=$!
trap 'kill "$sampler" 2>/dev/null' USR1 TERM
while IFS= read -r -u "$values" line; do echo "$node, gpu, $line"; done
wait "$sampler" 2>/dev/null
print_link_errors 'link end'
read -r -a stat <"/proc/$$/stat" # CPU time of this shell and of its children, in 1/100 s
cpu=$((stat[13] + stat[14] + stat[15] + stat[16]))
printf '%s, cost, %d.%02d, %d\n' "$node" $((cpu / 100)) $((cpu % 100)) $((SECONDS - begin))
exit 0
