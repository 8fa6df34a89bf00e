# Imports an image into a file. Set above: image, source, file.
tell() { echo "$1" >&2; }

if id=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null); then source=dockerd://$id; fi
mkdir -p "$(dirname "$file")" || exit 1
rm -f "$file.partial" # enroot writes over no file
import() { enroot import --output "$file.partial" "$source" && keep_image "$file.partial" "$file"; }
said=$(set -o pipefail; import 2>&1 | tee /dev/stderr) || refuse "$image" "$said"
