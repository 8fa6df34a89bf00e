# Pulls an image. Each line that is printed tells how far it is; the last one why it could not be had.
tell() { echo "$1" >&2; }

declare -A layers=()
whole=0 said=''
while IFS= read -r line; do
  said=$line
  case $line in
    *": Pulling fs layer") layers[${line%%:*}]=1 ;;
    *": Pull complete" | *": Already exists")
      layers[${line%%:*}]=1
      echo "pulling $image: $((whole += 1)) of ${#layers[@]} layers" ;;
    "Copying blob "*" done"*) echo "pulling $image: $((whole += 1)) layers" ;; # Podman
    *) echo "$line" ;;
  esac
done < <("$engine" pull "$image" 2>&1)
"$engine" image inspect "$image" >/dev/null 2>&1 || refuse "$image" "$said"
