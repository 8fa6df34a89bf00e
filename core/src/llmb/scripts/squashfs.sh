readable_squashfs() { # file: begins as such files do, and is not shorter than it says of itself (bytes 40 to 47)
  [ "$(head -c 4 "$1" 2>/dev/null)" = hsqs ] || return 1
  [ "$(stat -c %s "$1")" -ge "$(od -An -t u8 -j 40 -N 8 "$1" | tr -d ' ')" ]
}

keep_image() { # partial file, file: gives it its name if it is whole, with its checksum beside it
  if ! readable_squashfs "$1"; then
    echo "what came of the image is not a whole squashfs file" >&2
    return 1
  fi
  sha256sum <"$1" | cut -d ' ' -f 1 >"$2.sha256" && mv "$1" "$2"
}

whole_image() { # file: was kept, and is as long as it should be
  [ -s "$1.sha256" ] && readable_squashfs "$1"
}
