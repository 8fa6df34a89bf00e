place_secrets() { # in a file that the container removes: they are in no list of processes, and no engine keeps them
  local name
  for name in "${secrets[@]}"; do (umask 077 && printf 'export %s=%q\n' "$name" "${!name}" >>.secrets); done
}
