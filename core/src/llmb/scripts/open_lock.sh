# open_lock FILE: open a lock file for appending, as file descriptor $opened. Create it so that everyone who can write
# to its directory can take the lock. Follow no symbolic link, and open no second name of another file. On failure set
# $lock_error. The owner of a lock may be another user, so its content is not to be trusted.
open_lock() {
  lock_error="the lock $1 is no regular file, but a link; remove it"
  [ ! -L "$1" ] || return 1
  [ -e "$1" ] || (umask 0 && set -C && : >"$1") 2>/dev/null # does not follow a link that appears meanwhile
  if [ ! -w "$1" ]; then
    lock_error="cannot write the lock $1; make it writable"
    return 1
  fi
  exec {opened}>>"$1" || return 1
  # what is open has this name, and no other
  if [ ! -L "$1" ] && [ "$1" -ef "/proc/self/fd/$opened" ] && [ -f "$1" ] && [ "$(stat -c %h -- "$1")" = 1 ]; then
    return
  fi
  exec {opened}>&-
  return 1
}
