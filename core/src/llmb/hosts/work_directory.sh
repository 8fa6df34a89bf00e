# Functions that check a work directory. Set above: workdir, shared ("yes" or empty).

# trusts_group GROUP: check that a group may write: the user's own group, or with $shared any group of the user.
trusts_group() {
  [ "$1" = "$(id -g)" ] || { [ -n "$shared" ] && [[ " $(id -G) " = *" $1 "* ]]; }
}

# trusts_link LINK: check that a link is that of the user, of the owner of the work directory, or of root.
trusts_link() {
  local owner
  owner=$(stat -c %u -- "$1") || return 1
  [ "$owner" = "$EUID" ] || [ "$owner" = "$(stat -L -c %u -- "$workdir")" ] || [ "$owner" = 0 ]
}

# check_access DIRECTORY: check that only the user, or with $shared a group of the user, can change a directory that
# exists. Fail with the reason and the remedy.
check_access() {
  local owner group mode quoted others=o-w
  # llmb creates a missing directory; creating it fails with its own reason if a file has this name
  [ -d "$1" ] || return 0
  if [ -L "$1" ] && ! trusts_link "$1"; then
    echo "$1 is a symbolic link of $(stat -c %U -- "$1"); run \`rm $(printf %q "$1")\`, or set \`workdir = \"/path/to/folder\"\` in [target]" >&2
    return 1
  fi
  read -r owner group mode < <(stat -L -c '%u %g %a' -- "$1") || return 1
  quoted=$(printf %q "$1")
  if [ "$owner" != "$EUID" ] && [ -z "$shared" ]; then
    echo "$1 belongs to $(stat -L -c %U -- "$1"); set \`workdir = \"/path/to/folder\"\` in [target] to a folder of your own, or \`shared = true\` if you trust its users" >&2
  elif ((8#$mode & 2)) && [ -k "$1" ] && [ "$1" = "$workdir" ]; then # such as /tmp, which others need as it is
    echo "all users can write to $1; set \`workdir = \"$1/llmb-$(id -un)\"\` in [target]" >&2
  elif ((8#$mode & 2)); then
    if ((8#$mode & 16)) && ! trusts_group "$group"; then others=go-w; fi
    echo "all users can write to $1; run \`chmod $others $quoted\`, or set \`workdir = \"/path/to/folder\"\` in [target]" >&2
  elif ! ((8#$mode & 16)) || trusts_group "$group"; then
    return 0
  elif [ -z "$shared" ]; then
    echo "the group $(stat -L -c %G -- "$1") can write to $1; run \`chmod g-w $quoted\`, or set \`shared = true\` in [target] if you trust this group" >&2
  else
    echo "the group $(stat -L -c %G -- "$1"), to which you do not belong, can write to $1; run \`chmod g-w $quoted\`, or set \`workdir = \"/path/to/folder\"\` in [target]" >&2
  fi
  return 1
}

# check_all: check the work directory and the directories in it that all runs share.
check_all() {
  local each
  for each in "$workdir" "$workdir/runs" "$workdir/tasks" "$workdir/cache"; do check_access "$each" || return 1; done
}

# create_directories: create the work directory and the directories that all runs share, in a mode that check_access
# accepts whatever the umask. Fail if there is no directory for runs.
create_directories() (
  if [ -n "$shared" ]; then umask o-w; else umask go-w; fi
  mkdir -p -- "$workdir/runs" || exit 1
  mkdir -p -- "$workdir/tasks" "$workdir/cache" 2>/dev/null
  exit 0 # not every run needs these
)

# explain_closed DIRECTORY...: print the command for the owner of the directories to which only another user can write.
# Fail if the group can write to all of them.
explain_closed() {
  local each owner='' closed=()
  for each; do
    [ -d "$each" ] && [ ! -w "$each" ] && [ ! -O "$each" ] || continue
    [ -n "$owner" ] || owner=$(stat -L -c %U -- "$each")
    [ "$owner" != "$(stat -L -c %U -- "$each")" ] || closed+=("$(printf %q "$each")")
  done
  [ -n "$owner" ] || return 1
  echo "only $owner can write to ${closed[*]}, and has to run \`chmod g+w ${closed[*]}\`" >&2
}

# explain_dangling_link: print where the work directory leads if it is a link to a directory that does not exist.
explain_dangling_link() {
  [ ! -L "$workdir" ] || [ -e "$workdir" ] ||
    echo "it is a symbolic link to $(readlink -- "$workdir"), which does not exist" >&2
}
