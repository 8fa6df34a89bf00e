readable_squashfs() { # file: has the magic number, and is at least as long as its header states (bytes 40 to 47)
  [ "$(head -c 4 "$1" 2>/dev/null)" = hsqs ] || return 1
  [ "$(stat -c %s "$1")" -ge "$(od -An -t u8 -j 40 -N 8 "$1" | tr -d ' ')" ]
}

keep_image() { # partial file, file: renames a complete image and writes its checksum
  if ! readable_squashfs "$1"; then
    echo "the import did not produce a complete squashfs file" >&2
    return 1
  fi
  sha256sum <"$1" | cut -d ' ' -f 1 >"$2.sha256" && mv "$1" "$2"
}

is_complete_image() { # file
  [ -s "$1.sha256" ] && readable_squashfs "$1"
}
