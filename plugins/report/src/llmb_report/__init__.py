"""The HTML reports of llmb."""
