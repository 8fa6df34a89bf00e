# Download files of a public repository at Hugging Face into a folder. Files that are complete are not fetched again.
# Set by the caller: address (models/OWNER/NAME or datasets/OWNER/NAME), folder, files (an extended regular expression).
# HF_ENDPOINT may name a mirror. The last printed line is the cause of a failure.
set -eu
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
fetch='[ -e "$folder/$1" ] && exit
mkdir -p "$(dirname "$folder/$1")"
curl --silent --show-error --fail --location --retry 5 --output "$folder/$1.partial" "$url/$1" &&
  mv "$folder/$1.partial" "$folder/$1"'
printf '%s\n' "$names" | xargs -P 8 -n 1 bash -c "$fetch" fetch || fail "not all files of $address could be downloaded"
printf '%s\n' "$commit" >"$folder/.complete"
