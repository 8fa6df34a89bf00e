"""A list of hosts over SSH as a scheduler of llmb."""
