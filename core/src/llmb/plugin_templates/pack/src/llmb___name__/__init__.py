"""Data of the pack __name__. llmb reads the files beside this one, and never imports it."""
