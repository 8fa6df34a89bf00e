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
      ((new <= 0)) || printf '%s\0' "$number" "${offsets[number]}" "$new" "$path"
    done | copy_parts
}

copy_parts() { # of number, offset, count and path of each part, each with a NUL behind it, on standard input
  local number offset count path
  if command -v perl >/dev/null; then # one process for all
    LC_ALL=C perl -0 -e '
      chomp(my @parts = <STDIN>);
      while (my ($number, $offset, $count, $path) = splice @parts, 0, 4) {
        print "$number $count\n";
        open(my $file, "<:raw", $path) or die "$path: $!\n";
        defined(sysseek($file, $offset, 0)) or die "$path: $!\n";
        while ($count > 0) {
          my $read = sysread $file, my $block, $count < 1 << 20 ? $count : 1 << 20;
          defined $read or die "$path: $!\n";
          $read or last;
          print $block;
          $count -= $read;
        }
        print "\n";
      }'
    return
  fi
  while IFS= read -r -d '' number && IFS= read -r -d '' offset && IFS= read -r -d '' count && IFS= read -r -d '' path; do
    printf '%s %s\n' "$number" "$count"
    dd if="$path" iflag=skip_bytes,count_bytes,fullblock bs=1M skip="$offset" count="$count" status=none
    echo
  done
}
