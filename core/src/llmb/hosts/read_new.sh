# Tells what files hold beyond an offset: for each that has more, a line with its number and how many bytes, the bytes, a
# line's end. Files that are not there are left out; whatever else is wrong is told on standard error.

read_new() { # most bytes of one file, then offset and path of each
  local limit=$1 number=0 size path new offsets=() paths=()
  shift
  while (($#)); do offsets+=("$1") paths+=("$2"); shift 2; done
  printf '%s\0' "${paths[@]}" |
    LC_ALL=C xargs -0 stat -L --printf='%s\0%n\0' -- 2> >(grep -v 'No such file or directory$' >&2) |
    while IFS= read -r -d '' size && IFS= read -r -d '' path; do
      while [ "${paths[number]}" != "$path" ]; do ((number += 1)); done
      new=$((size - offsets[number] < limit ? size - offsets[number] : limit))
      ((new > 0)) || continue
      printf '%s %s\n' "$number" "$new"
      dd if="$path" iflag=skip_bytes,count_bytes,fullblock bs=1M skip="${offsets[number]}" count="$new" status=none
      echo
    done
}
