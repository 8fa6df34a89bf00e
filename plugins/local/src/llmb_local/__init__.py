"""Runs llmb jobs on this machine."""
