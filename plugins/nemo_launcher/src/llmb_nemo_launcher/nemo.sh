# nemo.sh SOURCES FOLDER... -- COMMAND: makes the folders, then runs the command in the source tree of NeMo or of its
# launcher. Lightning reads the rank environment that every scheduler gives, as it does under torchrun, whose name for
# the node's rank is another. NeMo's progress bar comes as lines: it never ends one, and what has no end is cut by those
# who label the lines of ranks, within a figure too.
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
exec 3> >(exec stdbuf -o0 tr '\r' '\n')
lines=$!
"$@" >&3 2>&1 3>&-
status=$?
exec 3>&-
# The rest of its output; but a process that it left behind, and that keeps its output open, must not hold up the job.
for ((tenth = 0; tenth < 50; tenth++)); do kill -0 "$lines" 2>/dev/null && sleep 0.1 || break; done
exit $status
