# Download the files of a Hugging Face repository into a folder: all files or none.
# Set by the caller: folder, repository, gated ("yes" or empty), files, config (the text of tokenizer_config.json, or
# empty), is_complete. The last printed line is the cause of a failure.
set -eu
site=${HF_ENDPOINT:-https://huggingface.co}
partial=$folder.partial.$$
mkdir -p "$partial"
trap 'rm -rf "$partial"' EXIT
# Downloads that died leave their partial folders. None takes a day.
find "${folder%/*}" -maxdepth 1 -name '*.partial.*' -mtime +0 -exec rm -rf {} +

fail() {
  echo "$1" >&2
  exit 1
}
command -v curl >/dev/null || fail "curl, which downloads the tokenizer, is not installed on this machine"

# Print curl's configuration with the token. It goes through a pipe, because other users can read the arguments and the
# environment of a process.
credentials() {
  [ -z "$gated" ] || printf 'header = "Authorization: Bearer %s"\n' "${HF_TOKEN//[[:space:]]/}"
}

fetch() { # file
  local status
  status=$(credentials | curl --config - --silent --show-error --location --retry 3 --create-dirs \
    --output "$partial/$1" --write-out '%{http_code}' "$site/$repository/resolve/main/$1") ||
    fail "$repository could not be downloaded from $site: curl failed with exit code $?"
  case $status in
    200) is_complete "$partial/$1" || fail "the downloaded $1 of $repository is empty or a pointer of Git LFS" ;;
    401) fail "$site rejected HF_TOKEN (401): export a valid token; create one at $site/settings/tokens" ;;
    403) fail "HF_TOKEN has no access to $repository (403): request access at $site/$repository (may take a day)" ;;
    404) fail "$repository has no file $1 (404)" ;;
    *) fail "$1 of $repository could not be downloaded from $site: HTTP status $status" ;;
  esac
}

for file in "${files[@]}"; do fetch "$file"; done
[ -z "$config" ] || printf '%s\n' "$config" >"$partial/tokenizer_config.json"
rm -rf "$folder"
mv "$partial" "$folder"
