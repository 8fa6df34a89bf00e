"""The checks of ``llmb doctor``."""
