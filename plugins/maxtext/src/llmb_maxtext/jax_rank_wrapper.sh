# jax_rank_wrapper.sh FOLDER... -- COMMAND
# Create the folders, export JAX's rank variables from the LLMB_* variables of the scheduler, and run the command.
# A single process needs no rank variables.
while [ "$1" != -- ]; do
  mkdir -p "$1" || exit
  shift
done
shift
if [ "$LLMB_WORLD_SIZE" -gt 1 ]; then
  if [ "${JAX_PLATFORMS-}" = cpu ]; then # on CPUs MaxText initializes JAX itself, from a host name and the fixed port 1234
    host=$LLMB_MASTER_ADDR
    if [ "$host" = 127.0.0.1 ]; then # runs on one machine need different hosts: all of 127.0.0.0/8 is this machine
      host=127.0.$((LLMB_MASTER_PORT / 256)).$((LLMB_MASTER_PORT % 256))
      export JAX_COORDINATOR_BIND_ADDRESS=$host:1234
    fi
    export JAX_COORDINATOR_ADDRESS=$host JOB_INDEX=0 JOB_COMPLETION_INDEX=$LLMB_RANK
    export PROCESSES_IN_JOB=$LLMB_WORLD_SIZE JAX_PROCESS_COUNT=$LLMB_WORLD_SIZE
  else # JAX reads no rank variables of its own; it detects Open MPI first, and then uses one GPU per process
    export JAX_COORDINATOR_ADDRESS=$LLMB_MASTER_ADDR:$LLMB_MASTER_PORT
    export OMPI_MCA_orte_hnp_uri=llmb OMPI_COMM_WORLD_SIZE=$LLMB_WORLD_SIZE
    export OMPI_COMM_WORLD_RANK=$LLMB_RANK OMPI_COMM_WORLD_LOCAL_RANK=$LLMB_LOCAL_RANK
  fi
fi
exec "$@"
