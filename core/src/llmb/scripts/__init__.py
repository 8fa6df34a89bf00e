"""Bash and container helpers that plugins share, independent of framework and scheduler."""
