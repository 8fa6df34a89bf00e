# is_complete FILE: check whether FILE.idx and FILE.bin are complete files of one Megatron dataset. The index consists
# of a magic number, a version, the type of a token, the numbers of sequences and documents, the lengths of the sequences
# (4 bytes each), their offsets in the data (8 bytes each) and the documents (8 bytes each). So the header determines
# the size of the index, and the last sequence determines the size of the data.
number() { # file, offset, bytes: print an unsigned integer of the file
  od -An -v -j "$2" -N "$3" -t "u$3" "$1" | tr -d ' '
}

is_complete() {
  local index=$1.idx data=$1.bin token sequences documents length offset
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
  offset=$(number "$index" $((26 + 12 * sequences)) 8)
  [ "$(stat -Lc %s "$data")" = $((offset + token * length)) ]
}
