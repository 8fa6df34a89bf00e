# Download the installer of Nsight Systems and install nsys into a folder.
# Set by the caller: url, folder. The last printed line is the cause of a failure.
set -eu
partial=$folder.partial.$$
mkdir -p "$partial"
# Downloads that died leave their partial folders. None takes a day.
find "${folder%/*}" -maxdepth 1 -name '*.partial.*' -mtime +0 -exec rm -rf {} +
trap 'rm -rf "$partial"' EXIT

fail() {
  echo "$1" >&2
  exit 1
}
command -v curl >/dev/null || fail "curl, which downloads Nsight Systems, is not installed on this machine"
curl --silent --show-error --fail --location --retry 3 --output "$partial/installer" "$url" ||
  fail "Nsight Systems could not be downloaded from $url: curl failed with exit code $?"
bash "$partial/installer" --target "$partial/files" -- -noprompt -targetpath "$partial/nsys" </dev/null ||
  fail "the installer from $url failed with exit code $?"
[ -e "$partial/nsys/bin/nsys" ] || fail "the installer from $url installed no bin/nsys"
rm -rf "$folder"
mv "$partial/nsys" "$folder"
