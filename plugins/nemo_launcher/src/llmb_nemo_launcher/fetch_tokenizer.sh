# Set above: folder, repository, gated (yes or nothing), files, whole. Fetches the files of a repository of Hugging Face
# into the folder, all or none. The last line that is printed tells what went wrong.
set -eu
site=${HF_ENDPOINT:-https://huggingface.co}
partial=$folder.partial.$$
trap 'rm -rf "$partial"' EXIT

refuse() {
  echo "$1" >&2
  exit 1
}
command -v curl >/dev/null || refuse "curl fetches the tokenizer, and is not installed here"

credentials() { # for curl, by a pipe: others can read the words of a command, and what a shell exports
  [ -z "$gated" ] || printf 'header = "Authorization: Bearer %s"\n' "${HF_TOKEN//[[:space:]]/}"
}

fetch() { # file
  local status
  status=$(credentials | curl --config - --silent --show-error --location --retry 3 --create-dirs \
    --output "$partial/$1" --write-out '%{http_code}' "$site/$repository/resolve/main/$1") ||
    refuse "$repository could not be fetched from $site: curl ended with exit status $?"
  case $status in
    200) whole "$partial/$1" || refuse "$1 of $repository came empty, or as a pointer of Git LFS" ;;
    401) refuse "HF_TOKEN was refused by $site (401): export a valid token, which $site/settings/tokens makes" ;;
    403) refuse "HF_TOKEN may not read $repository (403): ask for access at $site/$repository, which may take a day" ;;
    404) refuse "$repository has no file $1 (404)" ;;
    *) refuse "$1 of $repository could not be fetched from $site: HTTP status $status" ;;
  esac
}

for file in "${files[@]}"; do fetch "$file"; done
mkdir -p "$(dirname "$folder")"
rm -rf "$folder"
mv "$partial" "$folder"
