# nemo_rank_wrapper.sh SOURCES FOLDER... -- COMMAND
# Create the folders, then run the command in the source tree of NeMo or of its launcher. Lightning also reads
# GROUP_RANK, the rank of the node. The carriage returns of NeMo's progress bar become line breaks, because srun --label
# splits long lines, even inside numbers.
sources=$1
shift
if ! cd "$sources"; then
  echo "folder $sources not found; set nemo and launcher in [framework] to the folders of the sources in the image" >&2
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
# Wait for the rest of the output, at most 5 s: a process left behind by the command may keep the output open.
for ((tenth = 0; tenth < 50; tenth++)); do kill -0 "$lines" 2>/dev/null && sleep 0.1 || break; done
exit $status
