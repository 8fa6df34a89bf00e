# nemo.sh SOURCES FOLDER... -- COMMAND: makes the folders, then runs the command in the source tree of NeMo or of its
# launcher. Lightning reads the rank environment that every scheduler gives, as it does under torchrun, whose name for
# the node's rank is another. NeMo's progress bar comes as lines: it never ends one, and srun cuts and labels what has
# no end after 1024 bytes, within a figure too.
sources=$1
shift
if ! cd "$sources"; then
  echo "there is no $sources here; nemo and launcher in [framework] name the folders of the sources in the image" >&2
  exit 1
fi
while [ "$1" != -- ]; do
  mkdir -p "$1" || exit
  shift
done
shift
export PYTHONPATH=$sources${PYTHONPATH:+:$PYTHONPATH}
export GROUP_RANK=$LLMB_NODE_RANK
"$@" 2>&1 | stdbuf -oL tr '\r' '\n'
exit "${PIPESTATUS[0]}"
