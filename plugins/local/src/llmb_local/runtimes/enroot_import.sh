# Import an image into a squashfs file with enroot. Set above: image, source, file.
record_failure() { echo "$1" >&2; }

if id=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null); then source=dockerd://$id; fi
mkdir -p "$(dirname "$file")" || exit 1
rm -f "$file.partial" # enroot does not overwrite a file
import() { enroot import --output "$file.partial" "$source" && keep_image "$file.partial" "$file"; }
output=$(set -o pipefail; import 2>&1 | tee /dev/stderr) || fail "$image" "$output"
