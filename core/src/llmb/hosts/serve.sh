# Run by a login shell on the host, whose environment all commands have. Each command comes on standard input: a line
# with a mark, how many bytes follow, and how many seconds it may take, then bash, then perhaps input for that. When it
# has ended, the mark and its exit status stand at the end of its output, and the mark at the end of its errors.
tell_end() { # mark, exit status
  printf '%s %s\n' "$1" "$2"
  printf '%s' "$1" >&2
}

tell_end "$1" 0 # what the profiles wrote ends here
while read -r mark bytes limit_s; do
  head -c "$bytes" | {
    timeout -k 5 "$limit_s" bash -s
    status=$?
    cat >/dev/null # what it did not want
    exit "$status"
  }
  tell_end "$mark" "$?"
done
