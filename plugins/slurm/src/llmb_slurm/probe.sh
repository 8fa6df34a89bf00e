# What there is on a Slurm cluster, as key=value. Each answer may be missing; nothing is started.
# Set above, if at all: only_images, where nothing but images is asked for.
if command -v srun >/dev/null; then
  if srun --help 2>/dev/null | grep -q -e --container-image; then echo pyxis=yes; else echo pyxis=no; fi
fi
[ -z "${only_images-}" ] || exit 0

echo "enroot=$(command -v enroot)"
echo "clock=$(date +%s)"
if command -v sinfo >/dev/null; then echo "slurm=$(sinfo --version 2>/dev/null || echo Slurm)"; fi
if told=$(sinfo -h -o '%P|%a|%D|%l|%G' 2>&1); then
  declare -A total=() kinds=() rest=()
  while IFS='|' read -r name up nodes limit gres; do # a line for each kind of node
    [ "${name%\*}" = "$name" ] || echo "default_partition=${name%\*}"
    name=${name%\*}
    total[$name]=$((${total[$name]:-0} + nodes)) rest[$name]="$up|$limit"
    kinds[$name]+=${kinds[$name]:+ }$gres
  done <<<"$told"
  for name in "${!total[@]}"; do echo "partition.$name=${rest[$name]}|${total[$name]}|${kinds[$name]}"; done
else
  echo "unreachable=${told##*$'\n'}"
fi
if told=$(timeout 20 sacctmgr -n -P show assoc user="$(id -un)" format=account 2>/dev/null); then
  echo "accounts=$(sort -u <<<"$told" | paste -s -d ,)"
fi
exit 0
