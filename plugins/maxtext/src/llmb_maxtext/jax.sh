# Tells JAX which of how many processes this is, from the rank environment that every scheduler gives, then runs the
# command. MaxText reads the first two on CPUs and with one process per node, JAX itself the others.
if [ "$LLMB_WORLD_SIZE" -gt 1 ]; then
  export JAX_COORDINATOR_ADDRESS=$LLMB_MASTER_ADDR:$LLMB_MASTER_PORT
  export JOB_INDEX=0 JOB_COMPLETION_INDEX=$LLMB_RANK PROCESSES_IN_JOB=$LLMB_WORLD_SIZE JAX_PROCESS_COUNT=$LLMB_WORLD_SIZE
  export JAX_NUM_PROCESSES=$LLMB_WORLD_SIZE JAX_PROCESS_ID=$LLMB_RANK
fi
exec "$@"
