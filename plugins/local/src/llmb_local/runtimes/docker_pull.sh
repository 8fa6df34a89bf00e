# Pull an image with Docker or Podman. Set above: engine, image. Each printed line is the progress; if the pull fails,
# the last line is the reason.

declare -A layers=()
complete=0 last=''
while IFS= read -r line; do
  last=$line
  case $line in
    *": Pulling fs layer") layers[${line%%:*}]=1 ;;
    *": Pull complete" | *": Already exists")
      layers[${line%%:*}]=1
      echo "pulling $image: $((complete += 1)) of ${#layers[@]} layers" ;;
    "Copying blob "*" done"*) echo "pulling $image: $((complete += 1)) layers" ;; # Podman
    *) echo "$line" ;;
  esac
done < <("$engine" pull "$image" 2>&1)
"$engine" image inspect "$image" >/dev/null 2>&1 || { explain "$last"; exit 1; }
