# Command loop of shell.py, run by a login shell on the host, whose environment all commands inherit. A command on
# standard input is a line with a mark, a byte count and a time limit in seconds, then as many bytes: bash, and
# perhaps input for it. After each command, this prints the mark and the exit code on standard output, and the mark on
# standard error.

# print_end MARK EXIT_CODE: mark the end of the output of a command.
print_end() {
  printf '%s %s\n' "$1" "$2"
  printf '%s' "$1" >&2
}

umask "$2"
trap 'exit 75' PIPE # the connection was lost
print_end "$1" 0 # end of the output of the profiles
while read -r mark bytes limit_s; do
  head -c "$bytes" | {
    timeout -k 5 "$limit_s" bash -p -s 3>&2 2>/dev/null # bash warns first if the host lacks the locale of the profile
    status=$?
    cat >/dev/null # input that the command did not read
    exit "$status"
  }
  print_end "$mark" "$?"
done; exit 75 # on one line, because the rest of standard input is commands
