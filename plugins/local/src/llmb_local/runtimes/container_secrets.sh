place_secrets() { # writes the secrets to a file that the container reads and removes: no process list or engine shows them
  local name
  for name in "${secrets[@]}"; do (umask 077 && printf 'export %s=%q\n' "$name" "${!name}" >>.secrets); done
}
