# nemo.sh NEMO FOLDER... -- COMMAND: makes the folders, then runs the command in NeMo's source tree. Lightning reads the
# rank environment that every scheduler gives, as it does under torchrun, whose name for the node's rank is another.
nemo=$1
shift
if ! cd "$nemo"; then
  echo "NeMo is not at $nemo here; [framework] nemo names the folder of its sources in the image" >&2
  exit 1
fi
while [ "$1" != -- ]; do
  mkdir -p "$1" || exit
  shift
done
shift
export PYTHONPATH=$nemo${PYTHONPATH:+:$PYTHONPATH}
export GROUP_RANK=$LLMB_NODE_RANK
exec "$@"
