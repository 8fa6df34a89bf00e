# whole FILE: whether it has content of its own. Git puts a pointer of three lines in the place of a file that is kept by
# Git LFS, where that is not installed; a tokenizer made from it would be nonsense, or end the training much later.
whole() {
  [ -s "$1" ] && ! head -c 64 -- "$1" | grep -aq '^version https://git-lfs\.github\.com/spec/'
}
