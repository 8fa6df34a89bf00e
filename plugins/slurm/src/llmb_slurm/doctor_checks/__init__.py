"""The checks of a cluster and of a job for ``llmb doctor``, from the output of probe.sh."""
