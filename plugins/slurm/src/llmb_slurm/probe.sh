# Print what a Slurm cluster has as key=value lines. Any value may be missing. Set above: account and partition of the
# login, and only_pyxis, to stop after pyxis.

# probe_pyxis: print whether srun supports container images.
probe_pyxis() {
  command -v srun >/dev/null || return
  if srun --help 2>/dev/null | grep -q -e --container-image; then echo pyxis=yes; else echo pyxis=no; fi
}

# probe_host: print what this host has, and the groups of the user.
probe_host() {
  echo "enroot=$(command -v enroot)"
  echo "mksquashfs=$(command -v mksquashfs)"
  echo "awk=$(command -v awk)"
  echo "groups=$(id -Gn)"
  printf 'login_%s\n' "account=$account" "partition=$partition"
  if command -v nvidia-imex-ctl >/dev/null; then echo "imex=$(timeout 10 nvidia-imex-ctl -q 2>&1 | tail -n 1)"; fi
  command -v sinfo >/dev/null && command -v sbatch >/dev/null || return
  echo "slurm=$(sinfo --version 2>/dev/null || echo Slurm)"
}

# print_partitions: read the lines of sinfo, one per partition, kind and state of nodes. Print partitions and nodes.
print_partitions() {
  local name up count limit gres state
  local -A total=() kinds=() rest=() nodes=()
  while IFS='|' read -r name up count limit gres state; do
    [ "${name%\*}" = "$name" ] || echo "default_partition=${name%\*}"
    name=${name%\*}
    [ -n "$name" ] || continue # a cluster without partitions
    total[$name]=$((${total[$name]:-0} + count)) rest[$name]="$up|$limit"
    nodes[$name]+="${nodes[$name]:+;}$state|$count|$gres"
    case " ${kinds[$name]-} " in *" $gres "*) ;; *) kinds[$name]+=${kinds[$name]:+ }$gres ;; esac
  done
  for name in "${!total[@]}"; do
    echo "partition.$name=${rest[$name]}|${total[$name]}|${kinds[$name]}"
    echo "nodes.$name=${nodes[$name]}"
  done
}

# probe_controller: print the settings of the partitions and of the cluster, and its blocks of nodes.
probe_controller() {
  local partitions topology
  partitions=$(scontrol -a -o show partition 2>/dev/null)
  echo "$partitions" | sed -n 's/^PartitionName=\([^ ]*\)/settings.\1=/p'
  echo "$config" | sed -n 's/^\(TopologyPlugin\|SwitchType\|EnforcePartLimits\) *= */config.\1=/p'
  # since Slurm 25.05, a partition may have a topology other than the default one
  for topology in "" $(echo "$partitions" | sed -n 's/.* Topology=\([^ ]*\).*/\1/p' | sort -u); do
    scontrol show topology ${topology:+"$topology"} 2>/dev/null | sed -n "s|^BlockName=\([^ ]*\)|block.$topology/\1=|p"
  done
}

# probe_accounts: print the accounts of the user on this cluster. The database may serve other clusters, too.
probe_accounts() {
  local cluster output
  cluster=$(echo "$config" | sed -n 's/^ClusterName *= *//p')
  output=$(timeout 20 sacctmgr -n -P show assoc user="$(id -un)" ${cluster:+cluster="$cluster"} format=account 2>/dev/null) &&
    echo "accounts=$(echo "$output" | sort -u | paste -s -d ,)"
}

# probe_mpi: print the MPI types of srun, which prints a plugin per line (22.05), or several after a colon.
probe_mpi() {
  echo "mpi=$(srun --mpi=list 2>&1 | sed -n 's/^.*available: *//p; s/^[[:space:]]\+//p' | tr -s ', \n' '   ')"
}

probe_pyxis
[ -z "${only_pyxis-}" ] || exit 0
probe_host
if output=$(sinfo -a -h -o '%P|%a|%D|%l|%G|%T' 2>&1); then
  print_partitions < <(echo "$output")
  config=$(scontrol show config 2>/dev/null)
  probe_controller
  probe_accounts
  probe_mpi
else
  echo "unreachable=${output##*$'\n'}"
fi
echo "clock=$(date +%s)" # last: llmb compares it with its own clock when the output arrives, and Slurm may be slow
exit 0
