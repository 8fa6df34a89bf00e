# Download files of a public repository at Hugging Face into a folder. Files that are complete are not fetched again.
# Set by the caller: address (models/OWNER/NAME or datasets/OWNER/NAME), folder, files (an extended regular expression).
# HF_ENDPOINT may name a mirror. The last printed line is the progress, or the cause of a failure.
set -euo pipefail
hub=${HF_ENDPOINT:-https://huggingface.co}

fail() {
  echo "$1; without internet access, copy the files to $folder and create $folder/.complete with any text" >&2
  exit 1
}
command -v curl >/dev/null || fail "curl, which downloads $address, is not installed on this machine"
mkdir -p "$folder"
answer=$(curl --silent --show-error --fail --location --retry 3 "$hub/api/$address") ||
  fail "$hub does not list the files of $address: curl failed with exit code $?"
commit=$(printf '%s' "$answer" | grep -o '"sha": *"[0-9a-f]*"' | head -n 1 | cut -d '"' -f 4) || true
names=$(printf '%s' "$answer" | grep -o '"rfilename": *"[^"]*"' | cut -d '"' -f 4 | grep -xE "$files") || true
[ -n "$commit" ] && [ -n "$names" ] || fail "$hub lists no files of $address that are needed"
export url="$hub/${address#models/}/resolve/$commit" folder
# shellcheck disable=SC2016 # bash expands it for each file
fetch='if [ ! -e "$folder/$1" ]; then
  mkdir -p "$(dirname "$folder/$1")"
  curl --silent --show-error --fail --location --retry 5 --output "$folder/$1.partial" "$url/$1" || exit 1
  mv "$folder/$1.partial" "$folder/$1"
fi && echo "$1"'

# Read the names of complete files, and print how many there are.
count_files() {
  local all=$1 complete=0
  echo "0 of $all files"
  while read -r _; do
    complete=$((complete + 1))
    echo "$complete of $all files"
  done
}
printf '%s\n' "$names" | xargs -P 8 -n 1 bash -c "$fetch" fetch | count_files "$(printf '%s\n' "$names" | wc -l)" ||
  fail "not all files of $address could be downloaded"
printf '%s\n' "$commit" >"$folder/.complete"
