# place_secrets: write the secrets to a file, which the container reads and removes. So no process list and no engine
# shows them.
place_secrets() {
  local name
  for name in "${secrets[@]}"; do (umask 077 && printf 'export %s=%q\n' "$name" "${!name}" >>.secrets); done
}
