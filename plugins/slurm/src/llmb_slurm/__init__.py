"""The Slurm scheduler: runs llmb jobs on a Slurm cluster."""
