# Imports a container image into a file that is whole or not there. Arguments: the file, enroot's address of the image.
set -eu
file=$1 address=$2
. "$(dirname "$0")/squashfs.sh"

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
keep_image "$partial" "$file"
