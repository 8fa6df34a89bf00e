"""MaxText recipes for llmb."""
