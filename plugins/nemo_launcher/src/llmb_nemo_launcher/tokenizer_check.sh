# is_complete FILE: check whether the file exists, is not empty and is not a pointer of Git LFS. Without Git LFS, git
# checks out a three-line pointer instead of the file. A tokenizer from a pointer would be wrong or fail much later.
is_complete() {
  [ -s "$1" ] && ! head -c 64 -- "$1" | grep -aq '^version https://git-lfs\.github\.com/spec/'
}
