# Tells JAX which of how many processes this is, from the rank environment that every scheduler gives, then runs the
# command. With one process there is nothing to tell.
if [ "$LLMB_WORLD_SIZE" -gt 1 ]; then
  if [ "${JAX_PLATFORMS-}" = cpu ]; then # MaxText's own way: a host without a port, which is always 1234
    host=$LLMB_MASTER_ADDR
    if [ "$host" = 127.0.0.1 ]; then # so runs on one machine must differ in the host: any of 127.0.0.0/8 is this one
      host=127.0.$((LLMB_MASTER_PORT / 256)).$((LLMB_MASTER_PORT % 256))
      export JAX_COORDINATOR_BIND_ADDRESS=$host:1234
    fi
    export JAX_COORDINATOR_ADDRESS=$host JOB_INDEX=0 JOB_COMPLETION_INDEX=$LLMB_RANK
    export PROCESSES_IN_JOB=$LLMB_WORLD_SIZE JAX_PROCESS_COUNT=$LLMB_WORLD_SIZE
  else
    export JAX_COORDINATOR_ADDRESS=$LLMB_MASTER_ADDR:$LLMB_MASTER_PORT
    export JAX_NUM_PROCESSES=$LLMB_WORLD_SIZE JAX_PROCESS_ID=$LLMB_RANK JAX_LOCAL_PROCESS_ID=$LLMB_LOCAL_RANK
  fi
fi
exec "$@"
