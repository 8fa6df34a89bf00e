# Fetch one commit of a git repository into a folder. Set above: folder, url, commit.
export GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh -oBatchMode=yes}" GIT_LFS_SKIP_SMUDGE=1 LC_ALL=C
partial=$folder.partial

# fail REASON: exit with a message as the last line of the output, which llmb shows.
fail() {
  echo "cannot fetch $commit of $url: $1"
  exit 1
}

# logged COMMAND...: run git, and keep its output, which is also the progress that llmb shows.
logged() {
  git -C "$partial" "$@" 2>&1 | tee "$partial.log"
  return "${PIPESTATUS[0]}"
}

# git_error: print the error of the last git command without its progress and the advice that follows the error. Some
# errors of servers contain null bytes, for which grep would print nothing.
git_error() { tr '\r\0' '\n' <"$partial.log" | grep -m 1 '^\(fatal\|error\):' || tail -n 1 "$partial.log"; }

# fetch: fetch the commit alone, or all history if the server does not serve single commits or the commit is
# abbreviated.
fetch() {
  logged fetch --progress --depth 1 "$url" "$commit" ||
    logged fetch --progress "$url" '+refs/*:refs/fetched/*'
}

command -v git >/dev/null || fail "git is not installed on $(uname -n)"
mkdir -p "$(dirname "$folder")" || fail "cannot create $(dirname "$folder")"
rm -rf "$partial" "$partial.log" || fail "cannot remove $partial" # left behind by a killed task
git init --quiet "$partial" || fail "cannot create $partial"
fetch || fail "$(git_error)"
logged -c advice.detachedHead=false checkout --progress --force --detach "$commit" ||
  fail "$(git_error)"
rm -rf "$folder" "$partial.log" && mv -T "$partial" "$folder" || fail "cannot create $folder"
