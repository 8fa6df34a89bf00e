# Print what a Slurm cluster has as key=value lines. Any value may be missing. Set above: only_pyxis, to stop after
# pyxis.
if command -v srun >/dev/null; then
  if srun --help 2>/dev/null | grep -q -e --container-image; then echo pyxis=yes; else echo pyxis=no; fi
fi
[ -z "${only_pyxis-}" ] || exit 0

echo "enroot=$(command -v enroot)"
echo "clock=$(date +%s)"
if command -v sinfo >/dev/null; then echo "slurm=$(sinfo --version 2>/dev/null || echo Slurm)"; fi
if output=$(sinfo -h -o '%P|%a|%D|%l|%G' 2>&1); then
  declare -A total=() kinds=() rest=()
  while IFS='|' read -r name up nodes limit gres; do # one line per kind of node
    [ "${name%\*}" = "$name" ] || echo "default_partition=${name%\*}"
    name=${name%\*}
    total[$name]=$((${total[$name]:-0} + nodes)) rest[$name]="$up|$limit"
    kinds[$name]+=${kinds[$name]:+ }$gres
  done <<<"$output"
  for name in "${!total[@]}"; do echo "partition.$name=${rest[$name]}|${total[$name]}|${kinds[$name]}"; done
else
  echo "unreachable=${output##*$'\n'}"
fi
if output=$(timeout 20 sacctmgr -n -P show assoc user="$(id -un)" format=account 2>/dev/null); then
  echo "accounts=$(sort -u <<<"$output" | paste -s -d ,)"
fi
exit 0
