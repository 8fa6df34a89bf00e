# Places files, each whole or not at all. On standard input is a tar archive of them under their partial names.

place() { # token of the partial names, the files' names
  local token=$1 name partial names=()
  shift
  for name; do names+=("${name%/*}/.${name##*/}.$token.partial" "$name"); done
  if tar --no-same-owner --no-same-permissions -xPf - && rename_all "${names[@]}"; then return; fi
  for partial in "${names[@]}"; do [[ $partial != *."$token".partial ]] || printf '%s\0' "$partial"; done | xargs -0 rm -f
  return 1
}

rename_all() { # from, to, from, to ...
  if command -v perl >/dev/null; then # one process for all
    printf '%s\0' "$@" |
      perl -0 -e 'chomp(my @n = <STDIN>); while (@n) { my ($a, $b) = splice @n, 0, 2; rename $a, $b or die "$b: $!\n" }'
    return
  fi
  while (($#)); do mv -fT -- "$1" "$2" || return 1; shift 2; done
}
