# Import an image into a squashfs file with enroot. Set above: image, source, file.

if id=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null); then source=dockerd://$id; fi
mkdir -p "$(dirname "$file")" || exit 1
lock_image "$file" || exit 1
if is_complete_image "$file"; then exit 0; fi
trap 'rm -f "$partial"' EXIT
import() { enroot import --output "$partial" "$source" && keep_image "$partial" "$file"; }
output=$(set -o pipefail; import 2>&1 | tee /dev/stderr) || { explain "$output"; exit 1; }
