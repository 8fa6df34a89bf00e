# whole FILE: whether FILE.idx and FILE.bin are a whole data set of Megatron's, and of each other. The index begins with a
# magic word, its version, the type of a token and the numbers of sequences and of documents; then come the lengths of
# the sequences (4 bytes each), their places in the data (8) and the documents (8). So it tells its own size, and by the
# last sequence that of the data.
number() { # file, offset, bytes: an unsigned integer that is there
  od -An -v -j "$2" -N "$3" -t "u$3" "$1" | tr -d ' '
}

whole() {
  local index=$1.idx data=$1.bin token sequences documents length place
  [ -s "$index" ] && [ -s "$data" ] || return 1
  [ "$(od -An -v -N 9 -t x1 "$index" | tr -d ' ')" = 4d4d49444944580000 ] || return 1
  case $(number "$index" 17 1) in
    1 | 2) token=1 ;;
    3 | 8) token=2 ;;
    4) token=4 ;;
    5 | 6 | 7) token=8 ;;
    *) return 1 ;;
  esac
  sequences=$(number "$index" 18 8) documents=$(number "$index" 26 8)
  [ "$sequences" -gt 0 ] || return 1
  [ "$(stat -Lc %s "$index")" = $((34 + 12 * sequences + 8 * documents)) ] || return 1
  length=$(number "$index" $((30 + 4 * sequences)) 4)
  place=$(number "$index" $((26 + 12 * sequences)) 8)
  [ "$(stat -Lc %s "$data")" = $((place + token * length)) ]
}
