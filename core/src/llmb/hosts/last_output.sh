# The last output of processes, from their logs.

# last_output LOG: print the end of the last line of a log, from the beginning of a word: a part of a word may be the part
# of a secret, which no mask recognizes. A progress bar returns to the start of its line.
last_output() {
  local end
  end=$(tail -c 200 "$1" 2>/dev/null | tr '\r' '\n')
  if [[ $end == *$'\n'* ]] || [ "$(stat -c %s "$1")" -le 200 ]; then
    printf '%s\n' "${end##*$'\n'}"
  elif [[ $end == *' '* ]]; then
    printf '%s\n' "${end#* }"
  fi
}

# last_output_of ID LOG...: print the id and the last output of the newest log that is not empty, separated by a tab.
last_output_of() {
  local id=$1 log output=''
  shift
  while read -r log; do
    [ -s "$log" ] && output=$(last_output "$log") && break
  done < <(ls -t -- "$@" 2>/dev/null)
  printf '%s\t%s\n' "$id" "${output//[[:cntrl:]]/ }"
}
