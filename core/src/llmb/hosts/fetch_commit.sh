# Set above: folder, url, commit.
export GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh -oBatchMode=yes}" GIT_LFS_SKIP_SMUDGE=1 LC_ALL=C
making=$folder.partial

fail() { # the last line is what a user is told
  echo "cannot fetch $commit of $url: $1"
  exit 1
}

said() { grep -m 1 '^\(fatal\|error\):' "$making.log" || tail -n 1 "$making.log"; } # what follows it is advice

fetch() { # one commit; with all its history where the server gives no single ones, or the commit is abbreviated
  git -C "$making" fetch --quiet --depth 1 "$url" "$commit" 2>"$making.log" ||
    git -C "$making" fetch --quiet "$url" '+refs/*:refs/fetched/*' 2>"$making.log"
}

command -v git >/dev/null || fail "there is no git on $(hostname)"
mkdir -p "$(dirname "$folder")" || fail "$(dirname "$folder") cannot be made"
rm -rf "$making" || fail "$making cannot be removed" # what was left when one was killed
git init --quiet "$making" || fail "$making cannot be made"
fetch || fail "$(said)"
git -C "$making" -c advice.detachedHead=false checkout --quiet --force --detach "$commit" 2>"$making.log" ||
  fail "$(said)"
rm -rf "$folder" "$making.log" && mv -T "$making" "$folder" || fail "$folder cannot be made"
