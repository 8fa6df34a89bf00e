# titan_rank_wrapper.sh COMMAND
# Run the command in torchtitan's folder, with search paths that extend those of the container.
# Set by the job: TORCHTITAN_HOME and, for HybridEP, RDMA_CORE_HOME.
cd "$TORCHTITAN_HOME" || exit
ulimit -c 0 # no core dump of each rank
export PYTHONPATH="$TORCHTITAN_HOME${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "${RDMA_CORE_HOME-}" ]; then
  export LD_LIBRARY_PATH="$RDMA_CORE_HOME/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
exec "$@"
