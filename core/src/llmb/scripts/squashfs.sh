# readable_squashfs FILE: check the magic number, and that the file has the length in its header (bytes 40 to 47).
readable_squashfs() {
  [ -f "$1" ] || return 1 # a pipe would block
  [ "$(head -c 4 "$1" 2>/dev/null)" = hsqs ] || return 1
  [ "$(stat -c %s "$1")" -ge "$(od -An -t u8 -j 40 -N 8 "$1" | tr -d ' ')" ]
}

# lock_image FILE: wait until no other process imports the image, and set $partial to the file for an import. Remove the
# partial files of imports that died, also those of other images. A living import holds the lock of its image; where the
# file system has no locks, nothing is removed.
lock_image() {
  local found image
  partial=$1.${HOSTNAME%%.*}-$$.partial
  open_lock "$1.lock" || { echo "$lock_error" >&2 && return 1; }
  if flock "$opened" 2>/dev/null; then rm -f -- "$1".*.partial; fi
  for found in "${1%/*}"/*.partial; do
    image=${found%.*.partial}
    [ "$image" != "$1" ] && [ -e "$image.lock" ] || continue
    (open_lock "$image.lock" && flock -n "$opened" && rm -f -- "$found") 2>/dev/null || :
  done
}

# keep_image PARTIAL FILE: rename a complete image and write its checksum. Fail if the image is incomplete.
keep_image() {
  if ! readable_squashfs "$1"; then
    echo "the import did not produce a complete squashfs file" >&2
    return 1
  fi
  rm -f -- "$2.sha256" # a link is not followed
  sha256sum <"$1" | cut -d ' ' -f 1 >"$2.sha256" && mv "$1" "$2"
}

# is_complete_image FILE: check whether `keep_image` kept the file and it is complete.
is_complete_image() {
  [ -s "$1.sha256" ] && readable_squashfs "$1"
}
