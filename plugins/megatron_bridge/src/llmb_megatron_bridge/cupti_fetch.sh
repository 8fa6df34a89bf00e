# Download an archive of CUPTI and place its library.
# Set by the caller: url, file. The last printed line is the cause of a failure.
set -eu
partial=$file.partial.$$
mkdir -p "$partial"
# Downloads that died leave their partial folders. None takes a day.
find "${file%/*}" -maxdepth 1 -name '*.partial.*' -mtime +0 -exec rm -rf {} +
trap 'rm -rf "$partial"' EXIT

fail() {
  echo "$1" >&2
  exit 1
}
command -v curl >/dev/null || fail "curl, which downloads the CUPTI library, is not installed on this machine"
curl --silent --show-error --fail --location --retry 3 --output "$partial/archive" "$url" ||
  fail "the CUPTI library could not be downloaded from $url: curl failed with exit code $?"
tar -xf "$partial/archive" -C "$partial" || fail "the archive from $url cannot be extracted"
library=$(find "$partial" -name 'libcupti.so.*.*.*' -type f | head -n 1)
[ -n "$library" ] || fail "the archive from $url contains no libcupti.so"
mv -f "$library" "$file"
