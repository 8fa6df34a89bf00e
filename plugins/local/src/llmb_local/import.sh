# Imports an image into a file. Set above: image, source, file.
tell() { echo "$1" >&2; }

if docker image inspect "$image" >/dev/null 2>&1; then source=dockerd://$image; fi
mkdir -p "$(dirname "$file")" || exit 1
rm -f "$file.partial" # enroot writes over no file
said=$(enroot import --output "$file.partial" "$source" 2>&1 | tee /dev/stderr)
[ -s "$file.partial" ] && [ "${PIPESTATUS[0]}" = 0 ] || refuse "$image" "$said"
mv "$file.partial" "$file"
