# Import a container image into a squashfs file, which appears only if it is complete. Arguments: file, enroot's
# address.
set -eu
file=$1 address=$2
. "$(dirname "$0")/squashfs.sh"

mkdir -p "$(dirname "$file")"
lock_image "$file" # on a file system without locks, two imports waste time but do no harm
if is_complete_image "$file"; then exit 0; fi

trap 'rm -f "$partial"' EXIT
trap 'exit 143' TERM
echo "importing $address"
enroot import --output "$partial" "$address"
keep_image "$partial" "$file"
