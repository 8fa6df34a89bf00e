# open_lock FILE: open a lock file for reading and writing, as file descriptor $opened. Create it so that everyone who
# can write to its directory can take the lock. Follow no symbolic link, open no second name of another file, and wait
# for no pipe. On failure set $lock_error. It names the host, because its command must run there: `uname` reports the
# host, but HOSTNAME may be exported by another one. The owner of a lock may be another user, so its content is not to
# be trusted.
open_lock() {
  local names='' kind='' quoted named
  quoted=$(printf %q "$1") named="the lock $1 on $(uname -n)"
  # opens nothing that appears meanwhile
  [ -e "$1" ] || [ -L "$1" ] || (umask 0 && dd if=/dev/null of="$1" conv=excl) 2>/dev/null
  read -r names kind < <(LC_ALL=C stat -c '%h %F' -- "$1" 2>/dev/null)
  case "$names $kind" in
    ' ' | '1 regular '*) lock_error='' ;; # it does not exist, or is as it should be
    *' regular '*) lock_error="$named is a hard link of another file; run \`rm $quoted\` there" ;;
    *' directory') lock_error="$named is a directory, not a regular file; run \`rmdir $quoted\` there" ;;
    *) lock_error="$named is a $kind, not a regular file; run \`rm $quoted\` there" ;;
  esac
  [ -z "$lock_error" ] || return 1
  lock_error="cannot write $named; make it writable"
  [ -r "$1" ] && [ -w "$1" ] || return 1
  exec {opened}<>"$1" || return 1 # does not wait for the other end of a pipe
  # what is open has this name, and no other
  if [ ! -L "$1" ] && [ "$1" -ef "/proc/self/fd/$opened" ] && [ -f "$1" ] && [ "$(stat -c %h -- "$1")" = 1 ]; then
    return
  fi
  exec {opened}>&-
  lock_error="$named was replaced while llmb opened it; start again"
  return 1
}
