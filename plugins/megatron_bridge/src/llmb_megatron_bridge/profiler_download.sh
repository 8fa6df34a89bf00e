# Download a part of the profiler to $partial/download. The script after this one moves the result from there.
# Set by the caller: url, result, kind. The last printed line is the cause of a failure.
set -eu
partial=$result.partial.$$
mkdir -p "$partial"
# Downloads that died leave their partial folders. None takes a day.
find "${result%/*}" -maxdepth 1 -name '*.partial.*' -mtime +0 -exec rm -rf {} +
trap 'rm -rf "$partial"' EXIT

fail() {
  echo "$1" >&2
  exit 1
}
command -v curl >/dev/null || fail "curl, which downloads the $kind, is not installed on this machine"
# The bar is narrow, so that the part of the file that is done fits into the line of a terminal.
COLUMNS=24 curl --progress-bar --show-error --fail --location --retry 3 --output "$partial/download" "$url" ||
  fail "the $kind could not be downloaded from $url: curl failed with exit code $?"
