"""Data of the pack mi300x. llmb reads the files beside this one, and never imports it."""
