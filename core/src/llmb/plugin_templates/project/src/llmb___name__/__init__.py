"""The plugin __name__ of llmb."""
