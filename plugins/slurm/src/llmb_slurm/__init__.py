"""Runs llmb jobs on a Slurm cluster."""
