# Imports an image into a file. Set above: image, source, file.
tell() { echo "$1" >&2; }

if id=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null); then source=dockerd://$id; fi
mkdir -p "$(dirname "$file")" || exit 1
rm -f "$file.partial" # enroot writes over no file
said=$(enroot import --output "$file.partial" "$source" 2>&1 | tee /dev/stderr)
[ -s "$file.partial" ] && [ "${PIPESTATUS[0]}" = 0 ] || refuse "$image" "$said"
sha256sum <"$file.partial" | cut -d ' ' -f 1 >"$file.sha256"
mv "$file.partial" "$file"
