readable_squashfs() { # file: begins as such files do, and is not shorter than it says of itself (bytes 40 to 47)
  [ "$(head -c 4 "$1" 2>/dev/null)" = hsqs ] || return 1
  [ "$(stat -c %s "$1")" -ge "$(od -An -t u8 -j 40 -N 8 "$1" | tr -d ' ')" ]
}

whole_image() { # file: imported to its end
  [ -s "$1.sha256" ] && readable_squashfs "$1"
}
