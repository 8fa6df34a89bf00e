# Print what a Slurm cluster has as key=value lines. Any value may be missing. Set above: only_pyxis, to stop after
# pyxis.
if command -v srun >/dev/null; then
  if srun --help 2>/dev/null | grep -q -e --container-image; then echo pyxis=yes; else echo pyxis=no; fi
fi
[ -z "${only_pyxis-}" ] || exit 0

echo "enroot=$(command -v enroot)"
echo "mksquashfs=$(command -v mksquashfs)"
echo "awk=$(command -v awk)"
echo "groups=$(id -Gn)"
if command -v nvidia-imex-ctl >/dev/null; then echo "imex=$(timeout 10 nvidia-imex-ctl -q 2>&1 | tail -n 1)"; fi
if command -v sinfo >/dev/null && command -v sbatch >/dev/null; then echo "slurm=$(sinfo --version 2>/dev/null || echo Slurm)"; fi
if output=$(sinfo -a -h -o '%P|%a|%D|%l|%G|%T' 2>&1); then
  declare -A total=() kinds=() rest=() nodes=()
  while IFS='|' read -r name up count limit gres state; do # one line per kind and state of nodes
    [ "${name%\*}" = "$name" ] || echo "default_partition=${name%\*}"
    name=${name%\*}
    total[$name]=$((${total[$name]:-0} + count)) rest[$name]="$up|$limit"
    nodes[$name]+="${nodes[$name]:+;}$state|$count|$gres"
    case " ${kinds[$name]-} " in *" $gres "*) ;; *) kinds[$name]+=${kinds[$name]:+ }$gres ;; esac
  done < <(echo "$output")
  for name in "${!total[@]}"; do
    echo "partition.$name=${rest[$name]}|${total[$name]}|${kinds[$name]}"
    echo "nodes.$name=${nodes[$name]}"
  done
  scontrol -a -o show partition 2>/dev/null | sed -n 's/^PartitionName=\([^ ]*\)/settings.\1=/p'
  config=$(scontrol show config 2>/dev/null)
  echo "$config" | sed -n 's/^\(TopologyPlugin\|SwitchType\) *= */config.\1=/p'
  cluster=$(echo "$config" | sed -n 's/^ClusterName *= *//p') # the database of the accounts may serve several clusters
  if output=$(timeout 20 sacctmgr -n -P show assoc user="$(id -un)" ${cluster:+cluster="$cluster"} format=account 2>/dev/null); then
    echo "accounts=$(echo "$output" | sort -u | paste -s -d ,)"
  fi
  # since Slurm 25.05, a partition may have a topology other than the default one
  for topology in "" $(scontrol -a -o show partition 2>/dev/null | sed -n 's/.* Topology=\([^ ]*\).*/\1/p' | sort -u); do
    scontrol show topology ${topology:+"$topology"} 2>/dev/null | sed -n "s|^BlockName=\([^ ]*\)|block.$topology/\1=|p"
  done
  # a plugin per line (22.05), or several after a colon
  echo "mpi=$(srun --mpi=list 2>&1 | sed -n 's/^.*available: *//p; s/^[[:space:]]\+//p' | tr -s ', \n' '   ')"
else
  echo "unreachable=${output##*$'\n'}"
fi
echo "clock=$(date +%s)" # last: llmb compares it with its own clock when the output arrives, and Slurm may be slow
exit 0
