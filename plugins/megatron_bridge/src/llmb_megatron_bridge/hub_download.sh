# Download the files of a model at Hugging Face, except the weights, into a cache.
# Set by the caller: repository, folder, and file_types, separated by "|". HF_ENDPOINT may name a mirror. The last printed
# line is the cause of a failure.
set -eu
hub=${HF_ENDPOINT:-https://huggingface.co}
mkdir -p "$folder/refs" "$folder/snapshots"

fail() {
  echo "$1; without internet access, copy the folder from another machine to $folder" >&2
  exit 1
}
fetch() { curl --silent --show-error --fail --location --retry 3 "$@"; }
command -v curl >/dev/null || fail "curl, which downloads files of $repository, is not installed on this machine"
answer=$(fetch "$hub/api/models/$repository") || fail "$hub does not list the files of $repository: curl failed with exit code $?"
commit=$(printf '%s' "$answer" | grep -o '"sha": *"[0-9a-f]*"' | head -n 1 | cut -d '"' -f 4) || true
files=$(printf '%s' "$answer" | grep -o '"rfilename": *"[^"/]*"' | cut -d '"' -f 4 | grep -E "\.($file_types)\$") || true
[ -n "$commit" ] && [ -n "$files" ] || fail "$hub lists no configuration of $repository"
partial=$folder/snapshots/$commit.partial.$$
trap 'rm -rf "$partial"' EXIT
mkdir -p "$partial"
for file in $files; do
  fetch --output "$partial/$file" "$hub/$repository/resolve/$commit/$file" ||
    fail "$file of $repository could not be downloaded: curl failed with exit code $?"
done
[ -e "$folder/snapshots/$commit" ] || mv "$partial" "$folder/snapshots/$commit"
printf '%s' "$commit" >"$folder/refs/main.$$"
mv -f "$folder/refs/main.$$" "$folder/refs/main"
