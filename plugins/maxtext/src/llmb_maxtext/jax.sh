# jax.sh FOLDER... -- COMMAND: makes the folders, tells JAX which of how many processes this is, from the rank
# environment that every scheduler gives, then runs the command. With one process there is nothing to tell.
while [ "$1" != -- ]; do
  mkdir -p "$1" || exit
  shift
done
shift
if [ "$LLMB_WORLD_SIZE" -gt 1 ]; then
  if [ "${JAX_PLATFORMS-}" = cpu ]; then # MaxText's own way: a host without a port, which is always 1234
    host=$LLMB_MASTER_ADDR
    if [ "$host" = 127.0.0.1 ]; then # so runs on one machine must differ in the host: any of 127.0.0.0/8 is this one
      host=127.0.$((LLMB_MASTER_PORT / 256)).$((LLMB_MASTER_PORT % 256))
      export JAX_COORDINATOR_BIND_ADDRESS=$host:1234
    fi
    export JAX_COORDINATOR_ADDRESS=$host JOB_INDEX=0 JOB_COMPLETION_INDEX=$LLMB_RANK
    export PROCESSES_IN_JOB=$LLMB_WORLD_SIZE JAX_PROCESS_COUNT=$LLMB_WORLD_SIZE
  else # JAX has no variables of its own for its ranks: it looks for Open MPI's first, and takes one GPU a process then
    export JAX_COORDINATOR_ADDRESS=$LLMB_MASTER_ADDR:$LLMB_MASTER_PORT
    export OMPI_MCA_orte_hnp_uri=llmb OMPI_COMM_WORLD_SIZE=$LLMB_WORLD_SIZE
    export OMPI_COMM_WORLD_RANK=$LLMB_RANK OMPI_COMM_WORLD_LOCAL_RANK=$LLMB_LOCAL_RANK
  fi
fi
exec "$@"
