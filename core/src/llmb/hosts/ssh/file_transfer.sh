# Bash side of file_transfer.py: write_files and read_files.

unset -v PERL5OPT PERL_UNICODE # a user may set them to let perl read and print text instead of bytes

# write_files TOKEN NAME...: write files atomically. Standard input is a compressed tar archive of the files under
# temporary names, which contain TOKEN.
write_files() {
  local token=$1 name partial names=()
  shift
  for name; do names+=("${name%/*}/.${name##*/}.$token.partial" "$name"); done
  if tar --no-same-owner --no-same-permissions -xzPf - && rename_all "${names[@]}"; then return; fi
  for partial in "${names[@]}"; do [[ $partial != *."$token".partial ]] || printf '%s\0' "$partial"; done | xargs -0 rm -f
  return 1
}

# rename_all FROM TO FROM TO...: rename files.
rename_all() {
  if command -v perl >/dev/null; then # one process for all files
    printf '%s\0' "$@" |
      perl -0 -e 'chomp(my @n = <STDIN>); while (@n) { my ($a, $b) = splice @n, 0, 2; rename $a, $b or die "$b: $!\n" }'
    return
  fi
  while (($#)); do mv -fT -- "$1" "$2" || return 1; shift 2; done
}

# read_files LIMIT OFFSET PATH OFFSET PATH...: print up to LIMIT new bytes of each file that has any: a line with the
# number of the file and the count of bytes, the bytes, a newline. Skip missing files. Report other errors on standard
# error.
read_files() {
  local limit=$1 number=0 size path new offsets=() paths=()
  shift
  export LC_ALL=C # set for one command only, bash would warn of an invalid locale afterwards
  while (($#)); do offsets+=("$1") paths+=("$2"); shift 2; done
  printf '%s\0' "${paths[@]}" |
    xargs -0 stat -L --printf='%s\0%n\0' -- 2> >(grep -v 'No such file or directory$' >&2) |
    while IFS= read -r -d '' size && IFS= read -r -d '' path; do
      while [ "${paths[number]}" != "$path" ]; do ((number += 1)); done
      new=$((size - offsets[number] < limit ? size - offsets[number] : limit))
      ((new <= 0)) || printf '%s\0' "$number" "${offsets[number]}" "$new" "$path"
    done | copy_parts
}

# copy_parts: print parts of files. Standard input has number, offset, count and path of each part, each ended by NUL.
copy_parts() {
  local number offset count path
  if command -v perl >/dev/null; then # one process for all files
    perl -0 -e '
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
