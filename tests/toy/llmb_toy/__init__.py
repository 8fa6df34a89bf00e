"""A framework that trains nothing, for tests: it prints steps, waits at gates, and ends as it is told to."""
