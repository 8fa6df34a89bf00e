# Imports a container image into a file that is whole or not there. Arguments: the file, enroot's address of the image.
set -eu
file=$1 address=$2
. "$(dirname "$0")/whole_image.sh"

mkdir -p "$(dirname "$file")"
exec 9>>"$file.lock"
flock 9 2>/dev/null || true # where the file system has no locks, two imports cost time, and do no harm
if whole_image "$file"; then exit 0; fi

partial=$file.$$.partial
trap 'rm -f "$partial"' EXIT
trap 'exit 143' TERM
rm -f "$file".*.partial # of an import that was killed
echo "importing $address"
enroot import --output "$partial" "$address"
if ! readable_squashfs "$partial"; then
  echo "what enroot made of $address is not a whole squashfs file" >&2
  exit 1
fi
sha256sum "$partial" | cut -d ' ' -f 1 >"$file.sha256"
mv "$partial" "$file"
