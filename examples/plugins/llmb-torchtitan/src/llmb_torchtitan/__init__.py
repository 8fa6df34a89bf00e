"""torchtitan for llmb."""
