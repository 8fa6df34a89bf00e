"""A framework for tests that trains nothing: it prints steps, waits at gates, and ends as its options define."""
